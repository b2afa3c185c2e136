//! Connections to checked addresses.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, NextTimeout, RustlsConnector, TcpConnector,
};

use super::access::HttpAccess;
use super::target::{Host, Target};
use crate::error::ToolError;

/// TCP connection in the form of the HTTP client.
pub(super) type Connected = Result<Option<<TcpConnector as Connector>::Out>, Error>;

/// Name resolution and connections; tests replace it.
pub(super) trait Net: Debug + Send + Sync + 'static {
    fn look_up(&self, uri: &Uri, config: &Config, timeout: NextTimeout)
    -> Result<ResolvedSocketAddrs, Error>;

    fn connect(&self, details: &ConnectionDetails<'_>) -> Connected;

    /// Disables all address checks, for the test which proves that their absence is noticed.
    #[cfg(test)]
    fn is_unchecked(&self) -> bool {
        false
    }
}

/// Name resolution and connections of the operating system.
#[derive(Debug)]
pub(super) struct System;

impl Net for System {
    fn look_up(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        DefaultResolver::default().resolve(uri, config, timeout)
    }

    fn connect(&self, details: &ConnectionDetails<'_>) -> Connected {
        TcpConnector::default().connect(details, None)
    }
}

/// Permits only allowed connections.
///
/// It resolves a name once, passes on the addresses that it has checked, and checks the addresses again when
/// connecting. A DNS server therefore cannot answer the check with one address and the connection with another.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) access: HttpAccess,
    pub(super) net: Arc<dyn Net>,
}

impl Guard {
    /// Returns a connector for plain and encrypted connections.
    pub(super) fn connector(&self) -> impl Connector {
        self.clone().chain(RustlsConnector::default())
    }

    pub(super) fn check_target(&self, target: &Target) -> Result<(), ToolError> {
        #[cfg(test)]
        if self.net.is_unchecked() {
            return Ok(());
        }
        self.access.check_target(target)
    }

    fn check_address(&self, target: &Target, address: IpAddr) -> Result<(), ToolError> {
        #[cfg(test)]
        if self.net.is_unchecked() {
            return Ok(());
        }
        self.access.check_address(target, address)
    }
}

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let target = target(uri)?;
        self.check_target(&target).map_err(other)?;
        let mut found = self.empty();
        match target.host {
            Host::Address(address) => found.push(SocketAddr::new(address, target.port)),
            Host::Name(_) => found = self.net.look_up(uri, config, timeout)?,
        }
        let mut checked = self.empty();
        let mut refused = None;
        for address in &found {
            match self.check_address(&target, address.ip()) {
                Ok(()) => checked.push(*address),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            // A name with both allowed and refused addresses is reached by the allowed ones.
            Some(error) if checked.is_empty() => Err(other(error)),
            _ if checked.is_empty() => Err(Error::HostNotFound),
            _ => Ok(checked),
        }
    }
}

impl Connector for Guard {
    type Out = <TcpConnector as Connector>::Out;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Connected {
        let target = target(details.uri)?;
        for address in &details.addrs {
            self.check_address(&target, address.ip()).map_err(other)?;
        }
        self.net.connect(details)
    }
}

fn target(uri: &Uri) -> Result<Target, Error> {
    Target::of(uri).map_err(|problem| Error::BadUri(problem.to_owned()))
}

fn other(error: ToolError) -> Error {
    Error::Other(Box::new(error))
}
