//! HBase's services as traits: what servers offer to clients and to each other.
//!
//! A method's parameters are protobuf messages. So a trait can represent a server across the
//! network ([`Remote`]) or one in the same process, transparently to the caller. Each trait has a
//! `dispatch` function that answers a frame by calling it.
//!
//! A table per service lists all methods of HBase 2.6. Those of the trait work. The others are
//! rejected with the exception that the table names, so the client gets a clear error and tests can
//! verify `docs/fidelity.md`.

mod admin;
mod client;
mod client_meta;
mod master;
mod method;
mod region_server_status;
mod remote;

pub use admin::{ADMIN_METHODS, AdminService, SWITCH_RPC_THROTTLE, dispatch_admin};
pub use client::{CLIENT_METHODS, CellReply, CellRequest, ClientService, no_endpoint, refuse_client};
pub use client_meta::{CLIENT_META_METHODS, ClientMetaService, dispatch_client_meta};
pub use master::{MASTER_METHODS, MasterService, dispatch_master};
pub use method::{ALL, Method, Support, refuse};
pub use region_server_status::{
    REGION_SERVER_STATUS_METHODS, RegionServerStatusService, dispatch_region_server_status,
};
pub use remote::{Caller, Remote};

use bytes::Bytes;
use prost::Message;

use proto::exception::{Answer, JavaException};

/// Decodes a request message.
fn decode<M: Message + Default>(method: &str, param: Bytes) -> Answer<M> {
    M::decode(param).map_err(|error| {
        JavaException::do_not_retry(format!("unable to read call parameter of {method}; {error}"))
    })
}

/// Encodes a response message.
fn encode(message: &impl Message) -> Bytes {
    Bytes::from(message.encode_to_vec())
}

/// Declares a service: a trait of its supported methods, its dispatch, its method table, and its
/// remote form.
macro_rules! service {
    (
        $(#[$doc:meta])*
        $service:literal $trait:ident $dispatch:ident $table:ident
        works { $($(#[$method_doc:meta])* $rpc:literal $method:ident ($request:ident) -> $response:ident;)* }
        refused { $($refused:literal ($refused_request:ident) -> $refused_response:ident;)* }
    ) => {
        use base::BoxFuture;
        use bytes::Bytes;

        use proto::exception::Answer;
        use crate::service::method::{Method, Support, refuse};
        use crate::service::remote::{Caller, Remote, call};
        use crate::service::{decode, encode};

        $(#[$doc])*
        pub trait $trait: Send + Sync + 'static {
            $(
                $(#[$method_doc])*
                fn $method(&self, request: proto::$request) -> BoxFuture<'_, Answer<proto::$response>>;
            )*
        }

        #[doc = concat!("Every method of ", $service, " in HBase 2.6, and its support here.")]
        pub const $table: &[Method] = &[
            $(Method {
                name: $rpc,
                request: stringify!($request),
                response: stringify!($response),
                support: Support::Works,
            },)*
            $(Method {
                name: $refused,
                request: stringify!($refused_request),
                response: stringify!($refused_response),
                support: Support::Refused(proto::exception::class::DO_NOT_RETRY_IO),
            },)*
        ];

        #[doc = concat!("Answers a call of ", $service, " by its method's name and the bytes of its message.")]
        pub fn $dispatch<'a>(
            service: &'a dyn $trait,
            method: &str,
            param: Bytes,
        ) -> BoxFuture<'a, Answer<Bytes>> {
            match method {
                $($rpc => match decode(method, param) {
                    Ok(request) => {
                        let answer = service.$method(request);
                        Box::pin(async move { answer.await.map(|response| encode(&response)) })
                    }
                    Err(error) => Box::pin(std::future::ready(Err(error))),
                },)*
                other => Box::pin(std::future::ready(Err(refuse($table, other)))),
            }
        }

        impl<C: Caller> $trait for Remote<C> {
            $(fn $method(&self, request: proto::$request) -> BoxFuture<'_, Answer<proto::$response>> {
                Box::pin(call(&self.0, $service, $rpc, request))
            })*
        }
    };
}
use service;
