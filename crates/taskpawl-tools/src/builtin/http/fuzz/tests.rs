use taskpawl_fuzz::Target as Fed;

use super::url;

const URL: Fed<'_> = Fed {
    name: "URLs, hosts and redirects",
    corpus: &[
        "http://127.0.0.1:8080/a?b#c",
        "https://example.org",
        "http://[::ffff:127.0.0.1]:80/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://2130706433",
        "http://user@host/",
        "//x.example/y",
        "/a/../b/./c?d=..",
        "?q",
        "#f",
        "http://a.example.:443/",
        "http://xn--bcher-kva.example",
        "*.example.org",
        "[::1]:443",
        "localhost:1",
        "http://1.2.3.4.5/",
        "http://256.1.1.1",
        "http://[fe80::1%25eth0]/",
        "javascript:x",
    ],
    words: &[
        "http://",
        "https://",
        "//",
        "@",
        ":",
        "[",
        "]",
        "::",
        "0x",
        "127",
        "1",
        ".",
        "..",
        "%2e",
        "%00",
        "#",
        "?",
        "\\",
        "localhost",
        "example.org",
        "65536",
        "080",
        "é",
        "xn--",
        "*.",
    ],
};

#[test]
fn the_corpus_is_read_or_refused() {
    URL.corpus(url);
}

#[test]
fn hostile_urls_cause_no_panic() {
    URL.fuzz(url);
}
