//! The network, and the sockets of other programs.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use taskpawl_process::{Network, NetworkWall};

use super::Home;

#[tokio::test]
async fn there_is_no_network_but_that_of_the_programs() {
    let home = Home::new();
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = outside.local_addr().unwrap();
    home.fails(&format!("connect {address}")).await;
    home.fails("connect 192.0.2.1:80").await;
    for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET] {
        home.fails(&format!("family {family}")).await;
    }
    if home.enforcement().await.network == NetworkWall::Namespace {
        let (server, client) = tokio::join!(
            home.attempt_in("1", "serve ~/project/port"),
            home.attempt_in("2", "call ~/project/port")
        );
        assert_eq!((server, client), (Ok(String::new()), Ok("hello".to_owned())));
    }
}

#[tokio::test]
async fn the_full_network_is_that_of_the_user() {
    let mut home = Home::new();
    home.profile.network = Network::Full;
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    home.works(&format!("connect {}", outside.local_addr().unwrap())).await;
    assert_eq!(home.enforcement().await.network, NetworkWall::Open);
    home.fails(&format!("family {}", libc::AF_VSOCK)).await;
}

#[tokio::test]
async fn sockets_of_other_programs_are_out_of_reach() {
    for network in [Network::None, Network::Full] {
        let mut home = Home::new();
        home.profile.network = network;
        let _outside = UnixListener::bind(home.bench.path("other/socket")).unwrap();
        home.fails("unix ~/other/socket").await;
        // Programs may use sockets of their own in the project, so a foreign one there is blocked only if the profile hides it.
        let _inside = UnixListener::bind(home.bench.path("project/socket")).unwrap();
        home.profile.hidden.push(home.bench.path("project/socket"));
        home.fails("unix ~/project/socket").await;
        let name = format!("taskpawl-test-{}", std::process::id());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
        home.fails(&format!("abstract {name}")).await;
    }
}
