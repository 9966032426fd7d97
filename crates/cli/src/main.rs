//! The binary `vez`.

fn main() -> std::process::ExitCode {
    vez_cli::main()
}
