//! A client of a node elsewhere, and a resource that is safe without any clock.
//!
//! ```text
//! vez up &
//! cargo run -p vez --example client -- 127.0.0.1:7400
//! ```

use std::{io::Write, time::Duration};

use vez::{Client, fence::Register};

/// Takes a lock from outside, and shows its fence to what must not be touched by two.
///
/// # Errors
/// If the node cannot be reached, or the lock cannot be had.
pub(crate) async fn run(address: &str, out: &mut (impl Write + Send)) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::connect(address).await?;
    // The resource remembers the highest fence that it has seen.
    let mut accounts = Register::default();

    let guard = client.lock("accounts").await?;
    accounts.admit("accounts", guard.fence())?;
    writeln!(out, "inside, and not lost: {}", !guard.is_lost())?;
    let old = guard.fence();
    guard.release().await?;

    // It is lost if this client is not heard for ten seconds; and somebody who has waited for two does not wait longer.
    let wanted = client.lock("accounts").ttl(Duration::from_secs(10));
    let Some(guard) = wanted.within(Duration::from_secs(2)).await? else {
        writeln!(out, "somebody else has it")?;
        return Ok(());
    };
    accounts.admit("accounts", guard.fence())?;
    writeln!(out, "and one that comes late is refused: {}", accounts.admit("accounts", old).is_err())?;
    guard.release().await?;
    Ok(())
}

#[allow(dead_code, reason = "the tests call what is above")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7400".into());
    run(&address, &mut std::io::stdout()).await
}
