# The formula of a release; `scripts/pack-formula` sets the version, the address and the checksums.
class Taskpawl < Formula
  desc "Runs the plans of AI agents: durably, in parallel, in a sandbox"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

  on_intel do
    url "@REPOSITORY@/releases/download/v@VERSION@/taskpawl-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
    sha256 "@SHA256_X86_64@"
  end

  on_arm do
    url "@REPOSITORY@/releases/download/v@VERSION@/taskpawl-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
    sha256 "@SHA256_AARCH64@"
  end

  def install
    bin.install "taskpawl"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/bash" => "taskpawl"
    zsh_completion.install "completions/zsh" => "_taskpawl"
    fish_completion.install "completions/fish" => "taskpawl.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/taskpawl --version")
  end
end
