use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The tokens are assembled here, so that no secret scanner reports this file.
fn tokens() -> Vec<(&'static str, String)> {
    let run = |prefix: &str, length: usize| {
        let letters = "a1B2c3D4e5F6g7H8i9J0".chars().cycle().take(length);
        format!("{prefix}{}", letters.collect::<String>())
    };
    let key =
        ["-----BEGIN RSA ", "PRIVATE KEY-----\nMIIBOgIBAAJBAKj3\n+/=x\n-----END RSA ", "PRIVATE KEY-----"];
    vec![
        ("aws-key", run("AKIA", 16).to_uppercase()),
        ("aws-secret", format!("aws_secret_access_key = \"{}\"", run("", 40))),
        ("github-token", run("ghp_", 36)),
        ("github-token", run("github_pat_", 82)),
        ("gitlab-token", run("glpat-", 20)),
        ("slack-token", run("xoxb-12345-", 24)),
        ("anthropic-key", run("sk-ant-api03-", 90)),
        ("openai-key", run("sk-", 48)),
        ("stripe-key", run("sk_live_", 24)),
        ("npm-token", run("npm_", 36)),
        ("pypi-token", run("pypi-", 100)),
        ("google-key", run("AIza", 35)),
        ("gitlab-token", run("glagent-", 50)),
        ("slack-token", run("xoxc-12345-", 24)),
        ("huggingface-token", run("hf_", 34)),
        ("digitalocean-token", run("doo_v1_", 64).to_lowercase()),
        ("sendgrid-key", format!("{}.{}", run("SG.", 22), run("", 43))),
        ("vault-token", run("hvs.CAES", 90)),
        ("vault-token", run("hvb.AAAA", 120)),
        (
            "azure-key",
            format!(
                "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={}==;EndpointSuffix=y",
                run("", 86)
            ),
        ),
        ("azure-key", format!("SharedAccessKey={}=", run("", 43))),
        (
            "azure-sas",
            format!(
                "https://x.blob.example/c?sv=2024-01-01&sig={}%2B%2f{}%3D&se=2030",
                run("", 20),
                run("", 21)
            ),
        ),
        ("azure-sas", format!("?sig={}=", run("", 43))),
        ("atlassian-token", format!("{}=0A1B2C3D", run("ATATT3xFfGF0", 170))),
        ("telegram-token", format!("https://api.telegram.example/bot123456789:{}/getMe", run("AA", 33))),
        ("twilio-key", format!("SK{}", "0a1b2c3d".repeat(4))),
        ("databricks-token", format!("dapi{}", "0a1b2c3d".repeat(4))),
        ("doppler-token", run("dp.pt.", 43)),
        ("terraform-token", format!("{}.atlasv1.{}", run("", 14), run("", 67))),
        ("newrelic-key", run("NRAK-", 27).to_uppercase()),
        ("tailscale-key", run("tskey-auth-k", 24)),
        ("jwt", format!("{}.{}.{}", run("eyJ", 33), run("eyJ", 60), run("", 43))),
        ("bearer-token", format!("authorization: Bearer {}", run("", 32))),
        ("basic-auth", format!("Authorization: Basic {}==", run("", 14))),
        ("url-password", format!("postgres://user:{}@db.example/x", run("", 12))),
        ("private-key", key.concat()),
    ]
}

#[test]
fn tokens_are_recognised_by_their_shape() {
    let redactor = Redactor::new([]);
    for (name, token) in tokens() {
        let text = redactor.text(&token).into_owned();
        assert!(text.contains(&format!("[redacted:{name}]")), "{name}: {text}");
        let around = format!("x=\"{token}\", and more\n");
        let redacted = redactor.text(&around).into_owned();
        assert!(redacted.starts_with("x=\"") && redacted.ends_with("\", and more\n"), "{redacted}");
        assert_eq!(redactor.text(&redacted), redacted, "a text without secrets stays as it is");
    }
}

#[test]
fn text_that_only_resembles_a_token_stays() {
    let redactor = Redactor::new([("TOKEN", "very-secret-value")]);
    for text in [
        "a task-with-a-very-long-name-that-ends-in-2-digits-and-more-1234567890",
        "https://example.com:8080/a@b?x=y",
        "http://[::1]:80/",
        "eyJ is how base64 of JSON begins",
        "Bearer of good news, internationalization-and-so-on",
        "npm_config_registry=https://packages.example.org/",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "AKIA is followed by 16 letters",
        "sk-learn and hf_hub and SG.com",
        "d41d8cd98f00b204e9800998ecf8427e da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "550e8400-e29b-41d4-a716-446655440000 urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "https://example.com/a?sig=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "https://example.com/a?sig=short%3D&v=1",
        "at 12:AA and 10:AAAA, ratio 3:AAbbccddeeffgghhiijjkkllmmnnooppqqrrsstt1",
        "SKU-0a1b2c3d0a1b2c3d and SK0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3dff and TASKdapi",
        "AccountKey=${AZURE_KEY};SharedAccessKey=<your key>",
        "hvs.example.com and behvb.internal-name-of-a-host-without-any-number",
        "ATATT3x is what such a token begins with",
        "very-se",
        "",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}

#[test]
fn base64_of_an_image_stays() {
    let redactor = Redactor::new([]);
    // Pseudo-random data, as in a compressed image: every short base64 text occurs in it.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let signs = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let image: String = (0..200_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(signs[(state >> 33) as usize % signs.len()])
        })
        .collect();
    let text = format!("data:image/png;base64,iVBORw0KGgo{image}==");
    assert_eq!(redactor.text(&text), text);
}

#[test]
fn values_are_redacted_in_every_form_and_at_a_cut() {
    let value = "p\"4ss/wörd 'x'";
    let redactor = Redactor::new([("DB", value), ("LONG", "abcdef-ghijkl-mnopqr"), ("OTHER", "mnopqr-stu")]);
    let json = serde_json::to_string(value).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let table = [
        value.to_owned(),
        json,
        twice,
        "q=p%224ss%2Fw%C3%B6rd%20%27x%27&r=p%224ss%2fw%c3%b6rd+%27x%27".to_owned(),
        "x cCI0c3Mvd8O2cmQgJ3gn x".to_owned(),
        "abcdef-ghijkl-mnopqr-stu".to_owned(),
        "abcdef-ghijkl-mnopqrabcdef-ghijkl-mnopqr".to_owned(),
        "the end abcdef-ghijkl".to_owned(),
        "the end abcdef-ghijkl…".to_owned(),
        "the end abcdef-".to_owned(),
        "the end abc".to_owned(),
    ];
    let table: Vec<String> = table.iter().map(|text| format!("{text}\n  {}", redactor.text(text))).collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn wrapped_base64_is_redacted_at_every_offset() {
    let value =
        "github-pat-like-value-that-is-much-longer-than-one-line-of-base64-0123456789-and-goes-on-and-on";
    let redactor = Redactor::new([("LONG", value)]);
    // Output of `printf ab%s VALUE | base64 -w64`.
    let lines = "YWJnaXRodWItcGF0LWxpa2UtdmFsdWUtdGhhdC1pcy1tdWNoLWxvbmdlci10aGFu
LW9uZS1saW5lLW9mLWJhc2U2NC0wMTIzNDU2Nzg5LWFuZC1nb2VzLW9uLWFuZC1v
bg==
";
    let shown: Vec<String> = redactor.text(lines).lines().map(str::to_owned).collect();
    assert_eq!(shown, ["YWJ[redacted:LONG]", "[redacted:LONG]", "bg=="]);
}

#[test]
fn nested_values_and_keys_are_redacted() {
    let redactor = Redactor::new([("A", "alpha-1234"), ("B", "first line of it\nsecond line of it\n")]);
    let mut value =
        json!({"x": ["alpha-1234", 1, null, {"alpha-1234": "a alpha-1234 b"}], "y": "  second line of it"});
    redactor.value(&mut value);
    let expected =
        json!({"x": ["[redacted:A]", 1, null, {"[redacted:A]": "a [redacted:A] b"}], "y": "  [redacted:B]"});
    assert_eq!(value, expected);
    let mut value = json!(["alpha-1234"]);
    Redactor::off().value(&mut value);
    assert_eq!(value, json!(["alpha-1234"]));
}

#[test]
fn many_prefixes_are_read_in_linear_time() {
    // Each of these took hours while every prefix was checked up to the end of the text.
    for beginning in
        ["eyJ", "github_pat_", "sk-", "sk-1", "://a:", "-----BEGIN RSA PRIVATE KEY-----", "Bearer ", "eyJ."]
    {
        let text = beginning.repeat((4 << 20) / beginning.len());
        let redactor = Redactor::new([("A", "eyJeyJeyJ.")]);
        let mut out = Vec::new();
        let mut stream = redactor.stream();
        for piece in text.as_bytes().chunks(64 << 10) {
            stream.push(piece, &mut out);
        }
        stream.finish(&mut out);
        assert!(!out.is_empty());
    }
}

/// Texts that mix parts of secrets, whole secrets, and ordinary text.
fn texts() -> impl Strategy<Value = String> {
    let mut parts: Vec<String> = tokens().into_iter().map(|(_, token)| token).collect();
    for value in VALUES {
        parts.push((*value).to_owned());
        parts.push(value[..value.len() / 2].to_owned());
        parts.push(value[value.len() / 2..].to_owned());
    }
    let halves: Vec<String> =
        parts.iter().filter(|part| part.is_ascii()).map(|part| part[..part.len() / 2].to_owned()).collect();
    parts.extend(halves);
    parts.extend(["eyJ", ".", "://", ":", "@", "\n", " ", "-----BEGIN ", "x", "…", "ü"].map(str::to_owned));
    proptest::collection::vec(proptest::sample::select(parts), 0..12).prop_map(|parts| parts.concat())
}

const VALUES: &[&str] = &[
    "abcdef",
    "abcabcabd-x",
    "defghi-jkl",
    "ghp_abcdef",
    "eyJabcdefghijk",
    "line one of it\nline two of it",
];

fn redactor() -> Redactor {
    Redactor::new(VALUES.iter().map(|value| ("V", *value)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn chunks_give_the_same_result_as_the_whole_text(text in texts(), cuts in proptest::collection::vec(0_usize..300, 0..8)) {
        let redactor = redactor();
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let mut stream = redactor.stream();
        stream.push(text.as_bytes(), &mut whole);
        stream.finish(&mut whole);
        let mut stream = redactor.stream();
        let mut rest = text.as_bytes();
        for cut in cuts {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            stream.push(piece, &mut pieces);
            rest = more;
        }
        for byte in rest.chunks(1) {
            stream.push(byte, &mut pieces);
        }
        stream.finish(&mut pieces);
        prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&pieces));
    }

    #[test]
    fn no_value_is_left(text in texts()) {
        let redacted = redactor().text(&text).into_owned();
        for value in VALUES {
            prop_assert!(!redacted.contains(value), "{value} is left of {text}: {redacted}");
        }
    }

    #[test]
    fn arbitrary_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut out = Vec::new();
        let mut stream = redactor().stream();
        stream.push(&bytes, &mut out);
        stream.finish(&mut out);
    }
}
