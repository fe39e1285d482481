//! The first call to each new region server.
//!
//! A server that reaches the master need not be reachable from it: its host name may resolve to
//! another address here, or a firewall may block its port. Regions that it is ordered to open would
//! be offline until it dies. So a server gets regions only after it has answered a call. This is
//! also the moment when its logs have started.

use std::sync::Arc;
use std::time::Duration;

use base::env::TaskClass;
use cell::region::ServerName;
use proto::exception::{JavaException, class};
use tracing::warn;

use crate::context::Context;

/// The longest time for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a new server may take to answer. Its logs may wait for the storage. Regions that were
/// on it before are not given to other servers meanwhile, within the limits of the callers of
/// [`Servers::wait_for_contacts`](crate::servers::Servers::wait_for_contacts).
pub(crate) const START_MAX: Duration = Duration::from_secs(15);
/// The pause before a server that has not started yet is called again.
const START_PAUSE: Duration = Duration::from_millis(100);
/// The pause before a failed call is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Calls a new server until it has answered or is dead.
pub(crate) fn begin(context: &Arc<Context>, server: &ServerName) {
    if !context.servers.begin_contact(server) {
        return;
    }
    let (weak, server) = (Arc::downgrade(context), server.clone());
    let begun = context.env.clock.monotonic();
    context.env.spawn(TaskClass::Service, async move {
        let (mut is_logged, mut is_starting) = (false, false);
        while let Some(context) = weak.upgrade().filter(|context| context.servers.is_live(&server)) {
            let clock = context.env.clock.clone();
            let failed = match call(&context, &server).await {
                Ok(()) => return context.servers.end_contact(&server, true),
                Err(failed) => failed,
            };
            // When a server has started, it closes the connections of its start.
            let was_starting = std::mem::replace(&mut is_starting, matches!(failed, Failed::Starting));
            let is_refused = matches!(failed, Failed::Refused(_)) && !was_starting;
            if !is_refused && clock.monotonic() - begun < START_MAX {
                drop(context);
                clock.sleep(START_PAUSE).await;
                continue;
            }
            let why = match failed {
                Failed::NoAnswer => format!("no answer within {START_MAX:?}"),
                Failed::Starting => format!("not started within {START_MAX:?}"),
                Failed::Refused(why) => why,
            };
            context.servers.end_contact(&server, false);
            if !std::mem::replace(&mut is_logged, true) {
                warn!(%server, %why, "cannot call region server; other servers get the regions, if there are any");
            }
            drop(context);
            clock.sleep(RETRY_PAUSE).await;
        }
    });
}

/// Why a call has failed.
enum Failed {
    NoAnswer,
    /// The server has registered, and does not serve yet.
    Starting,
    Refused(String),
}

async fn call(context: &Context, server: &ServerName) -> Result<(), Failed> {
    let admin = context.connections.admin(server);
    let request = proto::GetServerInfoRequest {};
    let Some(answer) = context.env.timeout(CALL_TIMEOUT, admin.get_server_info(request)).await else {
        return Err(Failed::NoAnswer);
    };
    let refused = |error: JavaException| match error.is(class::SERVER_NOT_RUNNING_YET) {
        true => Failed::Starting,
        false => Failed::Refused(error.to_string()),
    };
    let answering = answer.map_err(refused)?.server_info.server_name;
    match answering.start_code == Some(server.start_code) {
        true => Ok(()),
        false => Err(Failed::Refused("another process has its address".to_string())),
    }
}
