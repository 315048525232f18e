//! Which account the settings name, and whether its connectors are switched off.

use std::sync::Arc;

use toolway_types::{Origin, Scope};

use crate::account::AccountProvider;
use crate::raw::FileSettings;
use crate::raw::settings::ObjectSetting;

/// The account's provider, by the file of the highest precedence that names one; and the first file
/// that switches connectors off.
pub(crate) fn account_settings(
    settings: &[(Scope, &FileSettings)],
) -> (Option<Arc<AccountProvider>>, Option<Origin>) {
    let account = settings
        .iter()
        .filter_map(|(scope, settings)| Some((*scope, settings.account.as_ref()?)));
    let account = ObjectSetting::highest(account);
    let off = settings
        .iter()
        .find_map(|(_, settings)| settings.connectors_off.clone());
    (account, off)
}
