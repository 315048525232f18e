//! Measures gateways side by side: `gateway-load PLAN` reads the plan, which
//! `cargo xtask bench gateway` writes, and prints all samples as one JSON object.

use std::fs::File;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use gateway_bench::load::figures;
use gateway_bench::load::plan::Plan;

fn main() -> Result<()> {
    let path = std::env::args()
        .nth(1)
        .context("usage: gateway-load PLAN")?;
    let file = File::open(&path).with_context(|| format!("cannot read `{path}`"))?;
    let plan: Plan = serde_json::from_reader(file).context("the plan cannot be read")?;
    let figures = figures::take(&plan)?;
    writeln!(std::io::stdout(), "{}", figures.into_value())?;
    Ok(())
}
