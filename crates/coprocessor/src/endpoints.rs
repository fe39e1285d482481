//! Services of regions, and dispatch of calls to them.
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
    response_budget: Arc<Budget>,
}

impl Endpoints {
    /// The endpoints of a server in `env`; large responses are charged to `response_budget`.
    pub fn new(env: Env, response_budget: Arc<Budget>) -> Endpoints {
        Endpoints { background: Background::new(env.clone()), env, response_budget }
    }

    /// Handles a call of one of `region`'s services. `timeout` is how long the client waits, if
    /// known. Dropping the future cancels the call.
    ///
    /// # Errors
    /// HBase's exceptions for an unknown service, an unknown method or an invalid request, and all
    /// errors of the service.
    pub async fn call(
        &self,
        region: &Arc<Region>,
        call: &proto::CoprocessorServiceCall,
        timeout: Option<Duration>,
    ) -> Result<Response> {
        let deadline = timeout.map(|timeout| self.env.clock.monotonic().saturating_add(timeout));
        let call =
            Call { call, deadline, background: &self.background, response_budget: &self.response_budget };
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
