//! Passes requests to a handler, and improves its errors.

use std::borrow::Cow;

use rmcp::ServerHandler;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};

use super::invalid_request;

/// A handler whose errors about unknown methods are full sentences: rmcp's consist of the method's name alone.
#[derive(Debug, Clone)]
pub(super) struct FormattedErrors<H>(pub(super) H);

impl<H: ServerHandler> Service<RoleServer> for FormattedErrors<H> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        Service::handle_request(&self.0, request, context).await.map_err(invalid_request::in_words)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}
