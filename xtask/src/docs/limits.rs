//! `docs/limits.md`, from the constants of one source file.
//!
//! Owns the page. The numbers, their sections and what they mean stand in
//! `crates/toolway-types/src/limits.rs`: a section is a module, a row a constant.

use anyhow::{Context, Result, bail};
use syn::{Attribute, BinOp, Expr, Item, ItemConst, Lit, Meta};

pub(super) const SOURCE: &str = "crates/toolway-types/src/limits.rs";

const HEAD: &str = "# Limits\n\n\
    Every quantity that others decide has a cap, and every wait an end. Above a cap the message, the \
    item or the call fails with a word that names the cap; the rest goes on. Time limits that can be \
    set are in [configuration.md](configuration.md#time-limits).\n";

/// The page, from the text of the source file.
pub(super) fn page(source: &str) -> Result<String> {
    let file = syn::parse_file(source).with_context(|| format!("`{SOURCE}` cannot be read"))?;
    let mut page = HEAD.to_owned();
    for item in &file.items {
        let Item::Mod(section) = item else { continue };
        let (_, items) = section.content.as_ref().context("a section has no items")?;
        let title = doc(&section.attrs);
        page.extend(["\n## ", &title, "\n\n| what | limit |\n| --- | --- |\n"]);
        for item in items {
            if let Item::Const(constant) = item {
                page += &row(constant)?;
            }
        }
    }
    Ok(page)
}

fn row(constant: &ItemConst) -> Result<String> {
    let what = doc(&constant.attrs);
    if what.is_empty() {
        bail!(
            "`{}` in `{SOURCE}` says nothing about itself",
            constant.ident
        );
    }
    let limit = shown(&constant.expr)
        .with_context(|| format!("`{}` in `{SOURCE}` cannot be shown", constant.ident))?;
    Ok(format!("| {what} | {limit} |\n"))
}

fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(literal) if pair.path.is_ident("doc") => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        }
    });
    lines.collect::<Vec<_>>().join(" ")
}

fn shown(expression: &Expr) -> Option<String> {
    if let Expr::Call(call) = expression
        && let Expr::Path(function) = &*call.func
    {
        let amount = number(call.args.first()?)?.0;
        let (unit, least) = match &*function.path.segments.last()?.ident.to_string() {
            "from_millis" => ("ms", 1),
            "from_secs" => ("s", 1),
            "from_mins" => ("min", 1),
            "from_hours" if amount == 24 => ("day", 24),
            "from_hours" if amount.is_multiple_of(24) => ("days", 24),
            "from_hours" => ("h", 1),
            _ => return None,
        };
        return Some(format!("{} {unit}", grouped(amount / least)));
    }
    match number(expression)? {
        (amount, false) => Some(grouped(amount)),
        (bytes, true) => {
            let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
            let unit = units
                .into_iter()
                .find(|(size, _)| bytes.is_multiple_of(*size))?;
            Some(format!("{} {}", grouped(bytes / unit.0), unit.1))
        }
    }
}

/// A product of numbers, and whether it is one of bytes.
fn number(expression: &Expr) -> Option<(u64, bool)> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => Some((number.base10_parse().ok()?, false)),
            _ => None,
        },
        Expr::Path(path) if path.path.is_ident("KIB") => Some((1 << 10, true)),
        Expr::Path(path) if path.path.is_ident("MIB") => Some((1 << 20, true)),
        Expr::Cast(cast) => number(&cast.expr),
        Expr::Binary(binary) if matches!(binary.op, BinOp::Mul(_)) => {
            let ((left, one), (right, other)) = (number(&binary.left)?, number(&binary.right)?);
            Some((left.checked_mul(right)?, one || other))
        }
        _ => None,
    }
}

/// With a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_a_module_and_a_row_a_constant() {
        let source = "
            /// What one message may have
            pub mod message {
                /// A line
                pub const LINE: usize = 16 * MIB;
                /// How long
                pub const TIME: Duration = Duration::from_hours(7 * 24);
                /// How many
                pub const COUNT: u32 = 10_000;
                /// Together
                pub const ALL: u64 = 1024 * MIB as u64;
            }
        ";
        let page = page(source).unwrap();
        let table = page.strip_prefix(HEAD).unwrap();
        assert_eq!(
            table,
            "\n## What one message may have\n\n| what | limit |\n| --- | --- |\n\
             | A line | 16 MiB |\n| How long | 7 days |\n| How many | 10,000 |\n\
             | Together | 1 GiB |\n"
        );
    }

    #[test]
    fn a_constant_that_says_nothing_or_is_no_product_is_refused() {
        for (constant, why) in [
            ("pub const A: usize = 1;", "says nothing"),
            ("/// What\npub const A: usize = other();", "cannot be shown"),
        ] {
            let error = page(&format!("pub mod a {{ {constant} }}")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
