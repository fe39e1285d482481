//! Namespaces.

use cell::schema::NamespaceDescriptor;
use client::Error;
use hyper::StatusCode;
use proto::exception::class;

use crate::call::Call;
use crate::gateway::Gateway;
use crate::media::{CELLS, DESCRIPTIONS, Media};
use crate::models::Model;
use crate::models::namespaces::{NamespaceModel, Namespaces};
use crate::models::tables::TableList;
use crate::reply::{Failure, ILLEGAL_ARGUMENT, Reply, Result};

impl Gateway {
    pub(crate) async fn namespaces(&self, call: &Call) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        let found = self.client.admin().list_namespaces().await.map_err(|error| Failure::of(&error))?;
        let mut names: Vec<String> = found.into_iter().map(|namespace| namespace.name).collect();
        names.sort();
        Ok(Namespaces(names).reply(media))
    }

    pub(crate) async fn namespace(&self, call: &Call, name: &str) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        // HBase answers with an error page.
        let found = self.client.admin().namespace(name).await.map_err(|_| server_error())?;
        Ok(NamespaceModel { name: found.name, properties: found.configuration }.reply(media))
    }

    pub(crate) async fn namespace_tables(&self, call: &Call, name: &str) -> Result<Reply> {
        let media = call.response_media(DESCRIPTIONS)?;
        let found = self.client.admin().list_namespace_tables(name).await.map_err(|_| server_error())?;
        let mut names: Vec<String> = found.iter().map(|table| table.qualifier().to_owned()).collect();
        names.sort();
        Ok(TableList(names).reply(media))
    }

    /// Creates a namespace, or replaces the properties of an existing one.
    pub(crate) async fn put_namespace(&self, call: &Call, name: String, creates: bool) -> Result<Reply> {
        // Another type is refused, as by HBase, even without a body.
        let stated = match call.body.is_empty() && call.header("content-type").is_none() {
            true => Media::Octets,
            false => call.body_media(CELLS)?,
        };
        let media = if call.body.is_empty() { Media::Octets } else { stated };
        let properties = NamespaceModel::decode_properties(media, &call.body)?;
        let mut namespace = NamespaceDescriptor::new(&name)
            .map_err(|illegal| Failure::exception(ILLEGAL_ARGUMENT, &illegal.0))?;
        namespace.configuration = properties;
        let forbidden = |text: String| Err(Failure::Text(StatusCode::FORBIDDEN, text));
        let exists = self.namespace_exists(&name).await?;
        let admin = self.client.admin();
        match (creates, exists) {
            (true, true) => forbidden(format!(
                "Namespace '{name}' already exists.  Use REST PUT to alter the existing namespace."
            )),
            (false, false) => forbidden(format!(
                "Namespace '{name}' does not exist. Use REST POST to create the namespace."
            )),
            (true, false) => {
                admin.create_namespace(&namespace).await.map_err(|error| Failure::of(&error))?;
                Ok(Reply::created(&call.url()))
            }
            (false, true) => {
                admin.modify_namespace(&namespace).await.map_err(|error| Failure::of(&error))?;
                Ok(Reply::of(Media::Text, call.url()))
            }
        }
    }

    pub(crate) async fn delete_namespace(&self, name: &str) -> Result<Reply> {
        if !self.namespace_exists(name).await? {
            let text = format!("Namespace '{name}' does not exists.  Cannot drop namespace.");
            return Err(Failure::Text(StatusCode::NOT_FOUND, text));
        }
        self.client.admin().delete_namespace(name).await.map_err(|error| Failure::of(&error))?;
        Ok(Reply::empty(StatusCode::OK))
    }

    async fn namespace_exists(&self, name: &str) -> Result<bool> {
        match self.client.admin().namespace(name).await {
            Ok(_) => Ok(true),
            Err(error) if is_unknown(&error) => Ok(false),
            Err(error) => Err(Failure::of(&error)),
        }
    }
}

fn is_unknown(error: &Error) -> bool {
    error.is_class(class::NAMESPACE_NOT_FOUND)
}

fn server_error() -> Failure {
    Failure::Page(StatusCode::INTERNAL_SERVER_ERROR)
}
