/**
 * JSON as it comes over the wire. Owns looking into what has no type yet.
 */

/** An object of JSON. */
export type JsonObject = { [member: string]: unknown };

/** The value if it is an object, else an empty one. */
export function object(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Whether a value is an object, and no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects of a list. */
export function rows<Row>(value: unknown): Row[] {
  return Array.isArray(value) ? (value.filter(isObject) as Row[]) : [];
}

/** The value if it is text. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Without members that were not given. */
export function given(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Whatever was thrown, in one line. */
export function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
