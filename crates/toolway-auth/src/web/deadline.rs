//! The time limit of requests, and the notice about slow ones.
//!
//! Owns the limit on every request of OAuth, and a notice in between, so that a user knows which
//! server is slow.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolway_types::limits;
use url::Url;

use super::{WebClient, WebError, WebReply, shown};

/// How long a request may take, redirects and body included.
pub const DEADLINE: Duration = limits::login::REQUEST_TIME;

/// How long nothing is said about it.
const SILENT_FOR: Duration = Duration::from_secs(2);

/// Told whose answer is being waited for: the address without its query.
pub type SlowListener = Arc<dyn Fn(&str) + Send + Sync>;

impl WebClient {
    /// The same, with a listener for slow answers.
    #[must_use]
    pub fn telling(mut self, tell: Option<SlowListener>) -> Self {
        self.tell = tell;
        self
    }

    pub(super) async fn in_time(
        &self,
        url: &Url,
        work: impl Future<Output = Result<WebReply, WebError>>,
    ) -> Result<WebReply, WebError> {
        // Boxed: everything that asks would carry the room for it along, several times.
        let work = Box::pin(work);
        let told = async {
            if let Some(tell) = &self.tell {
                sleep(SILENT_FOR).await;
                tell(&shown(url));
            }
            std::future::pending().await
        };
        let answered = async {
            tokio::select! {
                biased;
                answer = work => answer,
                never = told => never,
            }
        };
        match timeout(DEADLINE, answered).await {
            Ok(result) => result,
            Err(_) => Err(WebError::TimedOut { url: shown(url) }),
        }
    }
}
