//! Table of a hundred URLs with the expected decision on each. Any missing check makes it fail.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::json;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{ConnectionDetails, Connector, NextTimeout, TcpConnector};

use super::net::{Connected, Guard, Net};
use super::*;

/// Simulated network in which every address is the server of this test; it records all look-ups and connections.
#[derive(Debug)]
struct World {
    server: SocketAddr,
    is_unchecked: bool,
    looked_up: Mutex<BTreeMap<String, usize>>,
    connected: Mutex<Vec<SocketAddr>>,
}

/// Names with their answers, one list for each look-up; the last one repeats.
const NAMES: &[(&str, &[&[&str]])] = &[
    ("public.test", &[&["93.184.215.14"]]),
    ("other.test", &[&["8.8.8.8", "2606:4700::1111"]]),
    ("xn--bcher-kva.test", &[&["93.184.215.14"]]),
    ("loopback.test", &[&["127.0.0.1"]]),
    ("loopback6.test", &[&["::1"]]),
    ("private.test", &[&["10.0.0.5"]]),
    ("metadata.test", &[&["169.254.169.254"]]),
    ("mapped.test", &[&["::ffff:127.0.0.1"]]),
    ("nat64.test", &[&["64:ff9b::7f00:1"]]),
    ("mixed.test", &[&["10.0.0.5", "8.8.8.8"]]),
    ("zero.test", &[&["0.0.0.0"]]),
    ("xn--zn8haa.test", &[&["192.168.0.1"]]),
    ("rebinding.test", &[&["93.184.215.14"], &["127.0.0.1"]]),
    ("rebound.test", &[&["127.0.0.1"], &["93.184.215.14"]]),
    ("localhost", &[&["127.0.0.1", "::1"]]),
    ("app.localhost", &[&["127.0.0.1"]]),
    ("ip6-localhost", &[&["::1"]]),
];

impl Net for World {
    fn look_up(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let target = Target::of(uri).unwrap();
        let name = target.host.to_string();
        let (_, answers) = NAMES.iter().find(|(known, _)| *known == name).ok_or(ureq::Error::HostNotFound)?;
        let mut looked_up = self.looked_up.lock().unwrap();
        let count = looked_up.entry(name).or_default();
        let mut found = ureq::unversioned::resolver::DefaultResolver::default().empty();
        for address in answers[(*count).min(answers.len() - 1)] {
            found.push(SocketAddr::new(address.parse().unwrap(), target.port));
        }
        *count += 1;
        Ok(found)
    }

    fn connect(&self, details: &ConnectionDetails<'_>) -> Connected {
        self.connected.lock().unwrap().extend(details.addrs.iter());
        let mut addrs = details.resolver.empty();
        addrs.push(self.server);
        let details = ConnectionDetails {
            uri: details.uri,
            addrs,
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: details.current_time.clone(),
            run_connector: details.run_connector.clone(),
            register_shutdown: details.register_shutdown.clone(),
        };
        TcpConnector::default().connect(&details, None)
    }

    fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }
}

/// Serves requests forever. A path `/302/URL` redirects to `URL`; any other path returns the request itself.
fn server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = serve(stream.unwrap());
        }
    });
    address
}

fn serve(mut stream: std::net::TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
    }
    let length = request.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body)?;
    request.push_str(std::str::from_utf8(&body).unwrap());
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let answer = match path.trim_start_matches('/').split_once('/') {
        Some((status, location)) if status.starts_with('3') => {
            format!(
                "HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        }
        _ => format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{request}",
            request.len()
        ),
    };
    stream.write_all(answer.as_bytes())
}

/// Tool with its own simulated network.
struct Trial {
    world: Arc<World>,
    tool: HttpRequest,
    dir: tempfile::TempDir,
}

impl Trial {
    fn new(server: SocketAddr, access: HttpAccess, is_unchecked: bool) -> Self {
        let (looked_up, connected) = Default::default();
        let world = Arc::new(World { server, is_unchecked, looked_up, connected });
        let tool = HttpRequest::with(Guard { access, net: world.clone() });
        Self { world, tool, dir: tempfile::tempdir().unwrap() }
    }

    async fn call(&self, args: Value) -> Result<Value, ToolError> {
        let cx = CallContext::new(self.dir.path(), self.dir.path().join("output"));
        self.tool.call(cx, args).await
    }

    /// Returns `sent`, or the class of the error.
    async fn verdict(&self, url: &str) -> String {
        self.call(json!({"url": url}))
            .await
            .map_or_else(|error| error.class().to_owned(), |_| "sent".to_owned())
    }

    fn connected(&self) -> Vec<IpAddr> {
        self.world.connected.lock().unwrap().iter().map(SocketAddr::ip).collect()
    }
}

/// Only addresses in the table that a request may use.
const PUBLIC: &[&str] = &["93.184.215.14", "8.8.8.8", "2606:4700::1111", "2002:808:808::1"];

const SENT: &str = "sent";
const BLOCKED: &str = "blocked_address";
/// Not a URL, or not a host.
const INVALID: &str = "invalid_args";
/// The same in a redirect; also names that do not exist.
const NO_ANSWER: &str = "http";

const TABLE: &[(&str, &str)] = &[
    // Allowed.
    ("http://public.test/", SENT),
    ("http://public.test:8080/a?b=c", SENT),
    ("http://PUBLIC.test./", SENT),
    ("http://other.test/", SENT),
    ("http://mixed.test/", SENT),
    ("http://xn--bcher-kva.test/", SENT),
    ("http://8.8.8.8/", SENT),
    ("http://134744072/", SENT),
    ("http://0x08080808/", SENT),
    ("http://010.010.010.010/", SENT),
    ("http://[2606:4700::1111]/", SENT),
    ("http://[2002:808:808::1]/", SENT),
    ("http://public.test/302/http://other.test/", SENT),
    ("http://public.test/307//somewhere", SENT),
    ("http://public.test/?at=127.0.0.1", SENT),
    ("http://public.test/#@127.0.0.1", SENT),
    // Resolved once; that answer is used.
    ("http://rebinding.test/", SENT),
    // Spellings of 127.0.0.1.
    ("http://127.0.0.1/", BLOCKED),
    ("https://127.0.0.1/", BLOCKED),
    ("http://127.0.0.1:8080/", BLOCKED),
    ("http://127.0.0.1:/", BLOCKED),
    ("http://127.0.0.1./", BLOCKED),
    ("http://2130706433/", BLOCKED),
    ("http://2130706433./", BLOCKED),
    ("http://017700000001/", BLOCKED),
    ("http://0177.0.0.1/", BLOCKED),
    ("http://0177.0.0.01/", BLOCKED),
    ("http://00000000177.0.0.1/", BLOCKED),
    ("http://0x7f000001/", BLOCKED),
    ("http://0X7F000001/", BLOCKED),
    ("http://0x7f.0.0.1/", BLOCKED),
    ("http://0x7f.0x0.0x0.0x1/", BLOCKED),
    ("http://0x7f.1/", BLOCKED),
    ("http://127.1/", BLOCKED),
    ("http://127.0.1/", BLOCKED),
    ("http://127.0.0x1/", BLOCKED),
    ("http://0177.1/", BLOCKED),
    ("http://127.255.255.254/", BLOCKED),
    ("http://[::1]/", BLOCKED),
    ("http://[0:0:0:0:0:0:0:1]/", BLOCKED),
    ("http://[0000:0000:0000:0000:0000:0000:0000:0001]:80/", BLOCKED),
    ("http://[::ffff:127.0.0.1]/", BLOCKED),
    ("http://[::ffff:7f00:1]/", BLOCKED),
    ("http://[::FFFF:8.8.8.8]/", BLOCKED),
    ("http://[::127.0.0.1]/", BLOCKED),
    ("http://[64:ff9b::127.0.0.1]/", BLOCKED),
    ("http://[64:ff9b::808:808]/", BLOCKED),
    ("http://[64:ff9b:1::a00:1]/", BLOCKED),
    ("http://[2002:7f00:1::]/", BLOCKED),
    ("http://[2002:c0a8:1::]/", BLOCKED),
    ("http://[2001::1]/", BLOCKED),
    // Names that resolve to non-public addresses.
    ("http://localhost/", BLOCKED),
    ("http://LOCALHOST:80/", BLOCKED),
    ("http://localhost./", BLOCKED),
    ("http://app.localhost/", BLOCKED),
    ("http://ip6-localhost/", BLOCKED),
    ("http://loopback.test/", BLOCKED),
    ("https://loopback.test/", BLOCKED),
    ("http://loopback6.test/", BLOCKED),
    ("http://private.test/", BLOCKED),
    ("http://metadata.test/latest/meta-data/", BLOCKED),
    ("http://mapped.test/", BLOCKED),
    ("http://nat64.test/", BLOCKED),
    ("http://zero.test/", BLOCKED),
    ("http://xn--zn8haa.test/", BLOCKED),
    ("http://rebound.test/", BLOCKED),
    // Other networks that are not public.
    ("http://0.0.0.0/", BLOCKED),
    ("http://0/", BLOCKED),
    ("http://0x/", BLOCKED),
    ("http://10.0.0.1/", BLOCKED),
    ("http://10.1/", BLOCKED),
    ("http://100.64.0.1/", BLOCKED),
    ("http://169.254.169.254/latest/meta-data/", BLOCKED),
    ("http://2852039166/", BLOCKED),
    ("http://0xa9fea9fe/", BLOCKED),
    ("http://172.16.0.1/", BLOCKED),
    ("http://192.168.1.1/", BLOCKED),
    ("http://192.0.0.8/", BLOCKED),
    ("http://198.18.0.1/", BLOCKED),
    ("http://203.0.113.1/", BLOCKED),
    ("http://224.0.0.1/", BLOCKED),
    ("http://255.255.255.255/", BLOCKED),
    ("http://[::]/", BLOCKED),
    ("http://[fe80::1]/", BLOCKED),
    ("http://[fec0::1]/", BLOCKED),
    ("http://[fd00:ec2::254]/", BLOCKED),
    ("http://[ff02::1]/", BLOCKED),
    ("http://[2001:db8::1]/", BLOCKED),
    ("http://[100::1]/", BLOCKED),
    // Redirects.
    ("http://public.test/302/http://127.0.0.1/", BLOCKED),
    ("http://public.test/301/http://2130706433/", BLOCKED),
    ("http://public.test/303/http://0x7f.1:8080/", BLOCKED),
    ("http://public.test/307/http://[::ffff:127.0.0.1]/", BLOCKED),
    ("http://public.test/308/https://localhost/", BLOCKED),
    ("http://public.test/302///127.0.0.1/", BLOCKED),
    ("http://public.test/302/http://metadata.test/", BLOCKED),
    ("http://public.test/302/http://other.test/302/http://10.0.0.1/", BLOCKED),
    ("http://rebinding.test/302/http://rebinding.test/", BLOCKED),
    ("http://public.test/302/http://user@127.0.0.1/", NO_ANSWER),
    ("http://public.test/302/file:///etc/passwd", NO_ANSWER),
    ("http://public.test/302/gopher://127.0.0.1:25/", NO_ANSWER),
    // Invalid hosts, and unknown names.
    ("http://nowhere.test/", NO_ANSWER),
    ("http://public.test@127.0.0.1/", INVALID),
    ("http://127.0.0.1@public.test/", INVALID),
    ("http://user:password@127.0.0.1:80/", INVALID),
    ("http://public.test\\@127.0.0.1/", INVALID),
    ("http://127.0.0.1\\.public.test/", INVALID),
    ("http://127.0.0.1%2f.public.test/", INVALID),
    ("http://%31%32%37.0.0.1/", INVALID),
    ("http://127.0.0.1../", INVALID),
    ("http://127.0.0.1.1/", INVALID),
    ("http://127.0.0.256/", INVALID),
    ("http://127.0.0.08/", INVALID),
    ("http://4294967296/", INVALID),
    ("http://①②⑦.⓪.⓪.①/", INVALID),
    ("http://127。0。0。1/", INVALID),
    ("http://[::1%25lo]/", INVALID),
    ("http://[::1]a/", INVALID),
    ("http://[127.0.0.1]/", INVALID),
    ("http://public.test:80:80/", INVALID),
    ("http://public.test:65536/", INVALID),
    ("http://a b/", INVALID),
    ("http:///127.0.0.1/", INVALID),
    ("http://public..test/", INVALID),
];

/// Returns the rows with an unexpected result, and those that connected to a non-public address.
async fn wrong_rows(is_unchecked: bool) -> Vec<String> {
    let server = server();
    let mut wrong = Vec::new();
    for (url, expected) in TABLE {
        let trial = Trial::new(server, HttpAccess::public(), is_unchecked);
        let verdict = trial.verdict(url).await;
        let inside: Vec<_> =
            trial.connected().into_iter().filter(|ip| !PUBLIC.contains(&&*ip.to_string())).collect();
        if verdict != *expected || !inside.is_empty() {
            wrong.push(format!("{url}: {verdict} instead of {expected}, connected to {inside:?}"));
        }
    }
    wrong
}

#[tokio::test]
async fn a_hundred_urls_have_the_expected_decision() {
    assert!(TABLE.len() >= 100);
    assert_eq!(wrong_rows(false).await, Vec::<String>::new());
}

#[tokio::test]
async fn without_the_address_check_the_table_fails() {
    let wrong = wrong_rows(true).await;
    let blocked = TABLE.iter().filter(|(_, expected)| *expected == BLOCKED).count();
    // One more row fails: without the check `mixed.test` also connects to its private address.
    assert_eq!(wrong.len(), blocked + 1, "{wrong:#?}");
}

#[tokio::test]
async fn only_listed_hosts_are_reached() {
    let server = server();
    let hosts =
        ["public.test", "*.localhost", "127.0.0.1:8080", "localhost:3000", "[::1]", "private.test:443"];
    let access = HttpAccess::only(hosts).unwrap();
    for (url, expected) in [
        ("http://public.test:99/", SENT),
        ("http://public.test/302/http://127.1:8080/", SENT),
        ("http://127.0.0.1:8080/", SENT),
        ("http://[::1]:7/", SENT),
        ("http://localhost:3000/", SENT),
        // The name and the address must both be listed.
        ("http://app.localhost:8080/", SENT),
        ("http://app.localhost/", BLOCKED),
        ("http://private.test:443/", BLOCKED),
        ("http://127.0.0.1/", BLOCKED),
        ("http://127.0.0.2:8080/", BLOCKED),
        ("http://localhost:3001/", BLOCKED),
        ("http://other.test/", BLOCKED),
        ("http://8.8.8.8/", BLOCKED),
        ("http://public.test/302/http://other.test/", BLOCKED),
        ("http://sub.public.test/", BLOCKED),
    ] {
        let trial = Trial::new(server, access.clone(), false);
        assert_eq!(trial.verdict(url).await, expected, "{url}");
    }
}

#[tokio::test]
async fn a_narrower_list_allows_nothing_more() {
    let server = server();
    let all = ["*", "127.0.0.1:8080"];
    let granted = || HttpAccess::only(all).unwrap();
    let narrow = |access: HttpAccess, hosts: &[&str]| access.narrowed_to(hosts).unwrap();
    for (access, url, expected) in [
        (granted(), "http://other.test/", SENT),
        (granted(), "http://127.0.0.1:8080/", SENT),
        (granted(), "http://10.0.0.1/", BLOCKED),
        (narrow(granted(), &["127.0.0.1"]), "http://127.0.0.1:8080/", SENT),
        (narrow(granted(), &["127.0.0.1"]), "http://127.0.0.1:8081/", BLOCKED),
        (narrow(granted(), &["127.0.0.1"]), "http://other.test/", BLOCKED),
        (narrow(granted(), &["*.test"]), "http://127.0.0.1:8080/", BLOCKED),
        (narrow(granted(), &["*.test"]), "http://other.test/", SENT),
        (narrow(HttpAccess::public(), &["127.0.0.1", "localhost"]), "http://127.0.0.1/", BLOCKED),
        (narrow(HttpAccess::public(), &["127.0.0.1", "localhost"]), "http://localhost/", BLOCKED),
        (narrow(HttpAccess::public(), &["*"]), "http://other.test/", SENT),
        (narrow(HttpAccess::public(), &[]), "http://other.test/", BLOCKED),
    ] {
        let trial = Trial::new(server, access.clone(), false);
        assert_eq!(trial.verdict(url).await, expected, "{url} {access:?}");
    }
}

#[test]
fn invalid_hosts_are_refused() {
    for host in [
        "",
        "http://a.example",
        "a.example/b",
        "a.*",
        "*.",
        "*.1",
        "a:b",
        "a:99999",
        "127.1",
        "0x7f.0.0.1",
        "a@b",
        "1.2.3.4.5",
    ] {
        assert!(HttpAccess::only([host]).is_err(), "{host}");
    }
    for host in ["*", "*:443", "*.a.example:80", "a.example.", "::1", "[::1]", "[::1]:80", "1.2.3.4:5", "x"] {
        assert!(HttpAccess::only([host]).is_ok(), "{host}");
    }
}

#[tokio::test]
async fn refusals_name_the_setting_that_would_allow_the_request() {
    let server = server();
    let mut errors = Vec::new();
    for (access, url) in [
        (HttpAccess::public(), "http://0x7f.1:8080/"),
        (HttpAccess::public(), "http://private.test/"),
        (HttpAccess::public(), "http://[::1]/"),
        (HttpAccess::only(["a.example"]).unwrap(), "https://other.test/"),
    ] {
        errors
            .push(Trial::new(server, access, false).call(json!({"url": url})).await.unwrap_err().to_string());
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    `127.0.0.1:8080` is a loopback address, which is only allowed if `hosts` in `[tools.http_request]` of the user's configuration lists `127.0.0.1:8080`
    `private.test:80` resolves to `10.0.0.5`, a private address, which is only allowed if `hosts` in `[tools.http_request]` of the user's configuration lists `10.0.0.5:80` in addition to the name
    `[::1]:80` is a loopback address, which is only allowed if `hosts` in `[tools.http_request]` of the user's configuration lists `[::1]:80`
    `other.test:443` is not an allowed host: add it to `hosts` in `[tools.http_request]` of the configuration
    ");
}

#[tokio::test]
async fn secrets_do_not_follow_to_another_host() {
    let server = server();
    let headers =
        json!({"Authorization": "Bearer x", "Cookie": "y", "X-Api-Key": "z", "Accept": "text/plain"});
    for (to, expected) in [
        ("http://public.test:80/", vec!["accept", "authorization", "cookie", "x-api-key"]),
        ("/", vec!["accept", "authorization", "cookie", "x-api-key"]),
        ("http://other.test/", vec!["accept"]),
        ("http://public.test:81/", vec!["accept"]),
    ] {
        let trial = Trial::new(server, HttpAccess::public(), false);
        let args = json!({"url": format!("http://public.test/302/{to}"), "headers": headers});
        let result = trial.call(args).await.unwrap();
        let seen = result["body"].as_str().unwrap().to_lowercase();
        let names = ["accept", "authorization", "cookie", "x-api-key"];
        let names: Vec<_> =
            names.into_iter().filter(|name| seen.contains(&format!("\r\n{name}: "))).collect();
        assert_eq!(names, expected, "{to}");
    }
}

#[tokio::test]
async fn only_307_and_308_repeat_a_request_with_its_body() {
    let server = server();
    for (status, method, expected) in [
        (301, "POST", "GET"),
        (302, "PUT", "GET"),
        (303, "DELETE", "GET"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
        (303, "HEAD", "HEAD"),
        (302, "GET", "GET"),
    ] {
        let trial = Trial::new(server, HttpAccess::public(), false);
        let url = format!("http://public.test/{status}/http://other.test/end");
        let mut args = json!({"url": url, "method": method});
        if !matches!(method, "GET" | "HEAD") {
            args["json"] = json!({"a": 1});
        }
        let result = trial.call(args).await.unwrap();
        assert_eq!(result["url"], "http://other.test/end");
        let seen = result["body"].as_str().unwrap();
        if method == "HEAD" {
            assert_eq!(seen, "");
        } else {
            assert!(seen.starts_with(&format!("{expected} /end ")), "{seen}");
        }
        let has_body = expected != "GET" && method != "HEAD";
        assert_eq!(seen.contains("content-type: application/json"), has_body, "{seen}");
        assert_eq!(seen.ends_with("{\"a\":1}"), has_body, "{seen}");
    }
}

#[tokio::test]
async fn redirect_loops_end() {
    let trial = Trial::new(server(), HttpAccess::public(), false);
    let error = trial.call(json!({"url": "http://public.test/302/"})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no answer from `http://public.test/302/`: it redirects more than 10 times"
    );
    assert_eq!(trial.connected().len(), 11);
}

#[tokio::test]
async fn headers_that_control_the_connection_are_refused() {
    let trial = Trial::new(server(), HttpAccess::public(), false);
    for name in ["Host", "Transfer-Encoding", "content-length", "Connection"] {
        let args = json!({"url": "http://public.test/", "headers": {name: "1"}});
        assert_eq!(trial.call(args).await.unwrap_err().class(), "invalid_args", "{name}");
    }
    assert!(trial.connected().is_empty());
}
