//! Opens a connection: reads its preamble and header. If the preamble only requests the cluster id,
//! or is invalid, the client gets a response and the connection is closed.
//!
//! A handshake holds a preamble of six bytes or a header of at most 16 KiB in memory. The caller
//! limits its time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base::env::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Server;
use crate::call::{ConnectionInfo, Presence, Service};
use crate::compressor::Compressor;
use crate::header::{Codec, ConnectionHeader, HEADER_LEN_MAX};
use crate::preamble::{self, PREAMBLE_LEN, Preamble};

/// Maximum size in bytes of a SASL token that is skipped.
const TOKEN_LEN_MAX: u32 = 32 * 1024;
/// Maximum number of security preambles before an ordinary one.
const SECURITY_PREAMBLES_MAX: usize = 16;
/// Maximum bytes to drain before a close, so that the client does not lose the response.
const LEFTOVER_MAX: u64 = 64 * 1024;

/// The result of a handshake.
pub(super) enum HandshakeOutcome {
    /// Requests follow.
    Serving {
        /// The requested service.
        service: Arc<dyn Service>,
        /// The client and the negotiated parameters.
        info: Arc<ConnectionInfo>,
    },
    /// The client got a response to its preamble, and the connection is to be closed.
    Answered,
}

/// Why a handshake failed. If the header requests an unknown service, codec or compressor, the
/// client gets a response before the connection is closed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("connection lost: {0}")]
    Lost(#[from] io::Error),
    #[error("{0}")]
    Invalid(#[from] crate::fields::Malformed),
    #[error("unknown service {0:?}")]
    Service(Option<String>),
    #[error("unknown codec {0}")]
    Codec(String),
    #[error("unknown cell block compressor {0}")]
    Compressor(String),
}

/// Reads preamble and header from `stream`.
pub(super) async fn open(
    server: &Server,
    stream: &mut Box<dyn Stream>,
    peer: SocketAddr,
    local: SocketAddr,
) -> Result<HandshakeOutcome, HandshakeError> {
    for _ in 0..SECURITY_PREAMBLES_MAX {
        let mut bytes = [0; PREAMBLE_LEN];
        stream.read_exact(&mut bytes).await?;
        let preamble = preamble::parse(&bytes).expect("six bytes are a preamble");
        match preamble {
            Preamble::Simple => return read_header(server, stream, peer, local).await,
            Preamble::Sasl => {
                stream.write_all(&preamble::SWITCH_TO_SIMPLE).await?;
                stream.flush().await?;
                skip_token(stream).await?;
                return read_header(server, stream, peer, local).await;
            }
            Preamble::Registry => {
                let answer = preamble::registry_answer(server.cluster_id.as_deref());
                return answer_and_close(stream, &answer).await;
            }
            Preamble::Security
            | Preamble::BadMagic(_)
            | Preamble::BadVersion { .. }
            | Preamble::BadAuth { .. } => {
                let answer = preamble::refusal(preamble, peer).expect("refusals exist for these preambles");
                if preamble != Preamble::Security {
                    return answer_and_close(stream, &answer).await;
                }
                // The client then sends another preamble, without security.
                stream.write_all(&answer).await?;
                stream.flush().await?;
            }
        }
    }
    Err(HandshakeError::Invalid(crate::fields::Malformed("too many security preambles")))
}

async fn answer_and_close(
    stream: &mut Box<dyn Stream>,
    answer: &[u8],
) -> Result<HandshakeOutcome, HandshakeError> {
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes resets it, and the client could lose the response.
    let mut leftover = (&mut **stream).take(LEFTOVER_MAX);
    tokio::io::copy(&mut leftover, &mut tokio::io::sink()).await?;
    Ok(HandshakeOutcome::Answered)
}

/// Skips the first SASL token, which the client sends before it reads the switch to SIMPLE.
async fn skip_token(stream: &mut Box<dyn Stream>) -> Result<(), HandshakeError> {
    let len = stream.read_u32().await?;
    if len > TOKEN_LEN_MAX {
        return Err(HandshakeError::Invalid(crate::fields::Malformed("SASL token too long")));
    }
    let mut token = (&mut **stream).take(u64::from(len));
    let skipped = tokio::io::copy(&mut token, &mut tokio::io::sink()).await?;
    if skipped < u64::from(len) {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(())
}

async fn read_header(
    server: &Server,
    stream: &mut Box<dyn Stream>,
    peer: SocketAddr,
    local: SocketAddr,
) -> Result<HandshakeOutcome, HandshakeError> {
    let len = stream.read_u32().await? as usize;
    if len > HEADER_LEN_MAX {
        return Err(HandshakeError::Invalid(crate::fields::Malformed("connection header too long")));
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await?;
    // The preamble is not counted, as in HBase.
    server.instruments().received.add((size_of::<u32>() + len) as u64);
    let accepted = accept_header(server, ConnectionHeader::decode(&bytes)?, peer, local);
    let answer = match &accepted {
        Err(HandshakeError::Compressor(class)) => Some(preamble::unsupported_compressor(class)),
        Err(HandshakeError::Codec(class)) => {
            Some(preamble::refused_header("UnsupportedCellCodecException", class))
        }
        Err(HandshakeError::Service(name)) => {
            let name = name.as_deref().unwrap_or("no service is named");
            Some(preamble::refused_header("UnknownServiceException", name))
        }
        _ => None,
    };
    if let Some(answer) = answer {
        answer_and_close(stream, &answer).await?;
    }
    accepted
}

fn accept_header(
    server: &Server,
    header: ConnectionHeader,
    peer: SocketAddr,
    local: SocketAddr,
) -> Result<HandshakeOutcome, HandshakeError> {
    let service = match header.service_name.as_deref().and_then(|name| server.service(name)) {
        Some(service) => Arc::clone(service),
        None => return Err(HandshakeError::Service(header.service_name)),
    };
    // Java sends an empty class for "none".
    let codec = match header.codec_class.filter(|class| !class.is_empty()) {
        None => None,
        Some(class) => Some(Codec::of_class(&class).ok_or(HandshakeError::Codec(class))?),
    };
    let compressor = match header.compressor_class.filter(|class| !class.is_empty()) {
        None => None,
        Some(class) => Some(Compressor::of_class(&class).ok_or(HandshakeError::Compressor(class))?),
    };
    let info = ConnectionInfo {
        peer,
        local,
        service: service.name(),
        claimed_user: header.effective_user,
        // No authentication method is supported yet.
        principal: None,
        version: header.version,
        codec,
        compressor,
        presence: Presence::default(),
    };
    Ok(HandshakeOutcome::Serving { service, info: Arc::new(info) })
}
