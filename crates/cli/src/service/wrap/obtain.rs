//! Waiting for one's turn: asking again where that helps, and saying what is in the way.

use std::{
    io::IsTerminal,
    os::unix::ffi::OsStrExt,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use tokio::time::sleep;
use vez::{Client, ClientError, RemoteGuard, turn::Turn};

use super::{Wrapper, mismatch};
use crate::service::{
    local, show,
    tell::{plain, text},
};

/// A node that begins, or settles in a new view, cannot tell whether a name is free: who does not want to wait waits so long for that.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long it waits before it asks again: at first, and later.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Who waits for so long is told what for.
const SOON: Duration = Duration::from_secs(1);

impl<T> Wrapper<'_, T>
where
    T: Fn(&Client) -> Turn<'_, Client>,
{
    /// Finds a node, and takes what is wanted, if it can be had in time.
    pub(super) async fn acquire(&self) -> Result<Option<RemoteGuard>> {
        let target = self.options.remote.target()?;
        let who = self.who();
        let client =
            if target.given { target.connect_as(Some(who)).await? } else { local::client(&target, &who).await? };
        let wait = if self.options.nonblock { Some(Duration::ZERO) } else { self.options.wait };
        let begin = Instant::now();
        let mut obtained = pin!(self.obtain(&client, wait));
        let obtained = tokio::select! {
            guard = &mut obtained => guard,
            () = self.explain(&client, begin) => obtained.await,
        };
        let guard = match obtained {
            Ok(guard) => guard,
            Err(error) => return Err(mismatch::explained(&client, &self.want.names, self.want.kind, error).await),
        };
        if self.options.verbose {
            match &guard {
                Some(_) => {
                    let took = begin.elapsed().as_secs_f64();
                    self.voice.say(format_args!("getting {} took {took:.6} seconds", self.shown()));
                }
                None => {
                    let what = self.in_the_way(&client).await.0;
                    self.voice.say(format_args!("{} not to be had: {what}", self.shown_with("was", "were")));
                }
            }
        }
        Ok(guard)
    }

    /// Takes it, if it can be had in time. A node that cannot tell yet is asked again; if it goes while we wait, it or another
    /// comes back.
    async fn obtain(&self, client: &Client, wait: Option<Duration>) -> Result<Option<RemoteGuard>, ClientError> {
        let begin = Instant::now();
        let tries = wait.is_some_and(|wait| wait.is_zero());
        let patience = if tries { Some(PATIENCE) } else { wait };
        let (mut told, mut pause) = (false, PAUSE);
        loop {
            let turn = (self.want.turn)(client).ttl(self.options.ttl);
            let taken = match wait {
                None => turn.await.map(Some),
                Some(wait) => turn.within(wait.saturating_sub(begin.elapsed())).await,
            };
            let error = match taken {
                Ok(Some(guard)) if guard.is_lost() => continue, // This process was asleep meanwhile.
                Err(error) if error.is_temporary() || (error.is_unreachable() && !tries) => error,
                outcome => return outcome,
            };
            if patience.is_some_and(|patience| begin.elapsed() >= patience) {
                return Err(error); // Whether it is free cannot be told.
            }
            if error.is_unreachable() && !told {
                told = true;
                self.voice.say(format_args!("{:#}; still waiting for {}", anyhow!(error), self.shown()));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Says why we wait, once that takes a while.
    async fn explain(&self, client: &Client, begin: Instant) {
        sleep(SOON.saturating_sub(begin.elapsed())).await;
        let (what, is_usual) = self.in_the_way(client).await;
        if !is_usual || self.options.verbose || std::io::stderr().is_terminal() {
            self.voice.say(format_args!("waiting for {}: {what}", self.shown()));
        }
    }

    /// Who has it, or what else is in the way; and whether that is as it should be.
    async fn in_the_way(&self, client: &Client) -> (String, bool) {
        let mut all = Vec::new();
        for name in &self.want.names {
            match client.call(&[b"SHOW", name.as_bytes()]).await {
                Ok(shown) => all.push((plain(&name.to_string_lossy()), shown)),
                Err(error) => return cannot_tell(client, error).await,
            }
        }
        // Of several, those before the one that is waited for may be ours already.
        let who = self.who();
        let held = |(name, shown): &(String, _)| Some(format!("{name} is {}", show::held_by_others(shown, &who)?));
        let several: Vec<String> = all.iter().filter_map(held).collect();
        match &all[..] {
            [_, _, ..] if !several.is_empty() => (several.join("; "), true),
            all => (all.first().map_or(String::new(), |(_, shown)| show::in_the_way(shown)), true),
        }
    }
}

/// Why a node does not say who has something.
async fn cannot_tell(client: &Client, error: ClientError) -> (String, bool) {
    match client.call(&[b"STATUS"]).await {
        Ok(status) => {
            let (node, because) = (&status["node"], &status["because"]);
            (format!("node {} cannot tell: {}", text(node), text(because)), false)
        }
        Err(_) => (error.to_string(), false),
    }
}
