//! A headers helper and a login for the same server.
//!
//! Owns who speaks: the helper's headers beat the login's, and a helper that prints an
//! `Authorization` header is the login.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use toolway_auth::helper::HelperCredentials;
use toolway_transport::credentials::{
    CredentialHeaders, CredentialRefusal, CredentialRequest, Credentials, CredentialsError,
    RetryDecision,
};

use super::oauth::LoginCredentials;

/// Both of them.
#[derive(Debug)]
pub(crate) struct HelperAndLogin {
    pub(crate) helper: HelperCredentials,
    pub(crate) login: LoginCredentials,
}

impl Credentials for HelperAndLogin {
    fn present<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> BoxFuture<'a, Result<CredentialHeaders, CredentialsError>> {
        async move {
            let printed = self.helper.present(request).await?;
            if printed.headers().contains_key(AUTHORIZATION) {
                return Ok(printed);
            }
            let mut headers = self.login.present(request).await?.headers().clone();
            for (name, value) in printed.headers() {
                headers.insert(name.clone(), value.clone());
            }
            Ok(CredentialHeaders::new(headers))
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        presented: &'a CredentialHeaders,
        refusal: CredentialRefusal<'a>,
    ) -> BoxFuture<'a, RetryDecision> {
        async move {
            // Asked again, and not told by what was sent: both may have written the same name.
            let Ok(printed) = self.helper.present(refusal.request).await else {
                return RetryDecision::GiveUp;
            };
            if !printed.headers().contains_key(AUTHORIZATION) {
                let verdict = self.login.refused(presented, refusal).await;
                if verdict != RetryDecision::GiveUp {
                    return verdict;
                }
            }
            self.helper.refused(&printed, refusal).await
        }
        .boxed()
    }

    fn taken(&self) {
        self.login.taken();
    }

    fn heard(&self, request: CredentialRequest<'_>, headers: &HeaderMap) {
        self.login.heard(request, headers);
    }
}
