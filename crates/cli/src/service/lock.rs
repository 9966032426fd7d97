//! `vez lock`

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    process::ExitCode,
};

use anyhow::{Result, ensure};
use vez::{Client, Kind, turn::Turn};

use super::{
    tell::plain,
    wrap::{Options, Want},
};

/// Run a command while holding a lock, or several.
#[derive(clap::Args)]
#[command(
    override_usage = "vez lock [OPTIONS] NAME [--] COMMAND...
       vez lock [OPTIONS] NAME NAME... -- COMMAND...",
    after_help = "A name alone is a lock: one at a time. With -s and -x it is for readers and writers: any number with -s together, or one with -x alone. As long as a name is in use it is one or the other, for all. Of several names all are held or none, and those who say \
them in another order do not wait for each other for ever. Options come before the names, and the first -- ends these: a command that has a -- of its own needs one before it.

The command gets VEZ_LOCK_NAME and VEZ_LOCK_FENCE: a number that is larger for every later holder, to be shown to whatever must not be touched by two; and VEZ_LOCK_CLUSTER, since fences of two clusters cannot be compared. Of several names these are of the first; VEZ_LOCK_FENCES has a line for each, \
FENCE NAME. The command has the same standard input, gets the signals that `vez lock` gets (Ctrl-C by itself, as the terminal sends it), and on Linux dies with it. No shell is involved.

If the lock is lost (this machine or its node cannot be heard any more), the command gets TERM, and KILL after --grace. Somebody else may have the lock by then: what it touches should refuse its fence. Of several, one that is lost takes the others with it.

What the command itself has started does not die with it: let it `exec` what it runs. Nor does a command that changes its user, such as sudo.

Where nothing is said about a node and none was ever run on this machine by this user, one is started, which stays. On machines of a cluster, say where it is in VEZ_ADDR or vez.toml.

Examples:
  vez lock backup -- pg_dump -f backup.sql orders
  vez lock -n -E 0 deploy -- ./deploy.sh      if somebody else does, that is fine
  vez lock -w 10 -E 99 report -- make report
  vez lock -s catalogue -- ./search.sh        beside others with -s
  vez lock -x catalogue -- ./rebuild.sh       while nobody else is there
  vez lock accounts/1 accounts/2 -- ./transfer.sh

Exit code: that of the command, or 128 and its signal; 1 or CODE if somebody else has the lock; 75 if it was lost; 126 or 127 if the command cannot be run or found; 2 could not ask, or the node cannot tell."
)]
pub(crate) struct Args {
    /// Read: beside all others with -s, while nobody has it with -x.
    #[arg(short, long, conflicts_with = "exclusive")]
    shared: bool,
    /// Write: alone, where others have it with -s.
    #[arg(short = 'x', long, short_alias = 'e')]
    exclusive: bool,
    #[command(flatten)]
    options: Options,
    /// The name of the lock, or several, and the command with its arguments.
    // It begins with a name, and whatever comes after that is no option of ours.
    #[arg(value_name = "NAME", trailing_var_arg = true, required = true)]
    words: Vec<OsString>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let (names, command) = names_and_command(&self.words)?;
        ensure!(
            names.len() == 1 || !(self.shared || self.exclusive),
            "-s and -x are for one name, and these are {}; leave them out, or say one name",
            names.len()
        );
        let (shared, exclusive) = (self.shared, self.exclusive);
        let kind = if shared || exclusive { Kind::ReadWrite } else { Kind::Lock };
        let asked: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let want = Want::new(names, kind, |client| wanted(client, &asked, shared, exclusive));
        self.options.run(want, command).await
    }
}

fn wanted<'a>(client: &'a Client, names: &[&[u8]], shared: bool, exclusive: bool) -> Turn<'a, Client> {
    match names {
        [name] if shared => client.rw(name).read(),
        [name] if exclusive => client.rw(name).write(),
        names => client.lock_all(names),
    }
}

/// Whatever stands before the first `--` is a name. Without one, as flock(1) has it, the first word is.
fn names_and_command(words: &[OsString]) -> Result<(Vec<&OsStr>, &[OsString])> {
    let end = words.iter().position(|word| word == "--");
    let (names, command) = match end {
        Some(end) => (&words[..end], &words[end + 1..]),
        None => words.split_at(1),
    };
    let shown = |words: &[OsString]| plain(&words.join(OsStr::new(" ")).to_string_lossy());
    // A name may begin so, but most that do were meant as something else.
    let is_option = |word: &&OsString| word.as_bytes().starts_with(b"-") && *word != "-c";
    let odd = if end.is_some() { names.iter().skip(1).find(is_option) } else { command.first().filter(is_option) };
    if let Some(odd) = odd {
        let odd = shown(std::slice::from_ref(odd));
        anyhow::bail!("{odd} comes after a name; say options before the names, and -- before the command");
    }
    ensure!(!names.is_empty(), "there is no name before --; write vez lock NAME -- {}", shown(command));
    ensure!(!command.is_empty(), "there is no command; write vez lock {} -- COMMAND", shown(names));
    let mut each: Vec<&OsStr> = Vec::new();
    for name in names {
        // Said twice, it is held once.
        if !each.contains(&name.as_os_str()) {
            each.push(name);
        }
    }
    Ok((each, command))
}
