//! Which services a region has, and who answers a call of one.
//!
//! Source: HBase `HRegion.execService`.

use std::sync::Arc;
use std::time::Duration;

use base::budget::Budget;
use base::env::Env;
use cell::coprocessor;
use engine::Region;
use wire::service::no_endpoint;

use crate::background::Background;
use crate::call::{Call, Response};
use crate::error::Result;
use crate::{aggregate, columns, multi_row, row_count};

/// The endpoints of a server's regions.
pub struct Endpoints {
    env: Env,
    background: Background,
    answers: Arc<Budget>,
}

impl Endpoints {
    /// Those of a server in `env`, whose large answers are counted among `answers`.
    pub fn new(env: Env, answers: Arc<Budget>) -> Endpoints {
        Endpoints { background: Background::new(env.clone()), env, answers }
    }

    /// Answers a call of one of `region`'s services, for which the client waits as long as `timeout` from now, if it said so. Dropped,
    /// the call ends.
    ///
    /// # Errors
    /// Of a service that the region does not have, of a method that the service does not have, of a request that is not
    /// what it should be: by HBase's exceptions. All that the service fails with.
    pub async fn call(
        &self,
        region: &Arc<Region>,
        call: &proto::CoprocessorServiceCall,
        timeout: Option<Duration>,
    ) -> Result<Response> {
        let deadline = timeout.map(|timeout| self.env.clock.monotonic().saturating_add(timeout));
        let call = Call { call, deadline, background: &self.background, answers: &self.answers };
        match &call.call.service_name[..] {
            aggregate::SERVICE => aggregate::call(region, call).await,
            row_count::SERVICE => row_count::call(region, call).await,
            multi_row::SERVICE if coprocessor::is_named(region.table(), coprocessor::MULTI_ROW_MUTATION) => {
                multi_row::call(region, call.call).await
            }
            columns::SERVICE => columns::call(region, call).await,
            service => Err(no_endpoint(service, region.name().as_bytes()).into()),
        }
    }
}
