//! What the tests of every crate lean on: a home that is not the developer's, a server that
//! misbehaves on command, an authorization server that does, a bus that falls silent, a proxy that
//! spoils what passes, a process for one test, a census of what was left behind, a search for
//! secrets in what was written, a load that tells crossed answers, a witness of how children start, a ledger of outcomes, and the way
//! to the real peers.
//!
//! Only ever a dev-dependency. It shares no code with the product, so that a mistake on one side
//! is not repeated on the other: the scripted server writes its own JSON-RPC.
//! Everything here panics when the test's own footing is missing: that is how a test fails.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support: a panic with a clear message is how a test fails"
)]

pub mod alone;
pub mod authority;
pub mod browser;
pub mod chaos;
pub mod folder;
pub mod home;
pub mod leakcheck;
pub mod ledger;
pub mod listening;
pub mod marked;
pub mod output;
pub mod patience;
pub mod peers;
pub mod proxy;
pub mod script;
pub mod scripted;
pub mod seeded_random;
#[cfg(unix)]
pub mod silent_bus;
#[cfg(unix)]
pub mod soak;
pub mod witness;

pub use alone::alone;
pub use authority::{Authority, AuthoritySettings, Switch};
pub use browser::TestBrowser;
pub use folder::ScannedFolder;
pub use home::TempHome;
pub use leakcheck::{Canary, Census, LeakCheck, LiveProcess, Usage};
pub use ledger::{LedgerEntry, RequestLedger};
pub use listening::{ListeningServer, ListeningTransport};
pub use output::{CommandOutput, shell_code};
pub use patience::{eventually, eventually_blocking};
pub use proxy::{AnswerHold, ConnectionCut, ConnectionEnd, Direction, FaultProxy, ProxyFaults};
pub use script::{
    BulkLists, GrandchildEscape, Script, ScriptedExit, ScriptedSkills, SkillFlaw, SpokenEras,
};
pub use scripted::ScriptedServer;
pub use seeded_random::SeededRandom;
#[cfg(unix)]
pub use silent_bus::{SilentAt, SilentBus};
#[cfg(unix)]
pub use soak::{Soak, SoakFault, SoakReport};
pub use witness::StartWitness;
