/** The version of the package, which is the version of Toolway that it was made with. */
export const VERSION = "0.1.0";
