use taskpawl_fuzz::Target;

use super::file;

const FILE: Target<'_> = Target {
    name: "files of the configuration",
    corpus: &[
        "actor = \"ada\"\njobs = 4\nlease = \"10m\"\nlimit = 3\ncolor = \"auto\"\n",
        "[run]\ntimeout = \"2h\"\nretry = { attempts = 3, delay = \"1s\" }\nnotify = [\"x\", \"y\"]\n[resources]\ngpu = 2\n[output]\nquota = \"2GiB\"\n",
        "[tools.exec]\nconcurrency = 1\n[tools.http_request]\nhosts = [\"api.example.com\", \"*.example.org\", \"127.0.0.1:8080\"]\n",
        "[tools.pods]\ndescription = \"x\"\nargv = [\"kubectl\", \"get\", \"{kind}\", [\"-l\", \"{labels}\"]]\ntimeout = \"30s\"\n[tools.pods.params.kind]\npattern = \"^[a-z]+$\"\n[tools.pods.params.labels]\ntype = \"array\"\nrequired = false\n",
        "tools.x = { description = '''x''', argv = [\"x\", \"{n}\"], params.n = { type = \"integer\", default = 0x10 } }\n",
    ],
    words: &[
        "actor",
        "jobs",
        "[tools.x]\n",
        "[[tools]]\n",
        "[tools.exec]\n",
        "argv",
        "description",
        "params",
        "concurrency",
        "hosts",
        "[run]\n",
        "retry",
        "attempts",
        "[resources]\n",
        " = ",
        "\"x\"",
        "1979-05-27T07:32:00Z",
        "nan",
        "inf",
        "1_000",
        "'''",
        "\"\"\"",
        "{ ",
        " }",
        "[",
        "]",
        "\n",
        "{a}",
        "é",
        "timeout",
        "\"1s\"",
        "-1",
        "99999999999999999999",
        "\\u0000",
        ".",
    ],
};

#[test]
fn the_corpus_is_read_or_refused() {
    FILE.corpus(file);
}

#[test]
fn hostile_files_panic_nothing() {
    FILE.fuzz(file);
}
