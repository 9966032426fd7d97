//! What every connection of ours has in common.

use std::{io, time::Duration};

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// A connection whose other end may vanish without a word, as machines do. That is noticed within about `patience`: by questions
/// that are not answered, and by what was sent and not acknowledged, which the kernel would otherwise send again ever more
/// seldom.
pub(crate) fn prepare(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    let patience = patience.max(Duration::from_secs(1));
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    // In whole seconds, and at least one.
    let pause = (patience / 3).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(stream, pause)?;
    sockopt::set_tcp_keepintvl(stream, pause)?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, u32::try_from(patience.as_millis()).unwrap_or(u32::MAX))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_kernel_is_told_how_long_to_wait() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let stream = TcpStream::connect(listener.local_addr()?).await?;
        prepare(&stream, Duration::from_secs(6))?;
        assert!(stream.nodelay()?);
        assert!(sockopt::socket_keepalive(&stream)?);
        assert_eq!(sockopt::tcp_keepidle(&stream)?, Duration::from_secs(2));
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&stream)?, 6000);
        Ok(())
    }
}
