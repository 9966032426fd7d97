//! What a node knows, as replies.

use vez_peer::{
    ask::{Failure, Kind, Leader},
    identity::{Address, ClusterId, MemberId},
    name::Name,
    peer::{MemberStatus, Standings},
};

use super::reply::Reply;
use crate::{
    clock::{self, Nanos},
    engine::Engine,
    gather::{Listing, Picture},
    identity,
    inquiry::{Held, Report, Vitals, Waiting},
};

/// Why a client does not get what it asked for. The first word is for programs.
pub(super) fn failure(failure: &Failure) -> Reply {
    let code = match failure {
        Failure::Mismatch { .. } | Failure::OnlyLocks { .. } => "MISMATCH",
        Failure::Settling(_) | Failure::NoMoreFences | Failure::Interrupted(_) => "TRYAGAIN",
        Failure::NoMember => "NOMEMBER",
        Failure::Leaving => "LEAVING",
        Failure::Lost | Failure::NoSession => "LOST",
        Failure::NotYours(_) => "NOTYOURS",
        Failure::TooMany(_) => "TOOMANY",
        Failure::Busy(_)
        | Failure::TimedOut(_)
        | Failure::Cancelled(_)
        | Failure::TooHeavy { .. }
        | Failure::NoUnits(_)
        | Failure::NotInUse(_)
        | Failure::TooLong(_)
        | Failure::KeptTooLong { .. }
        | Failure::KeptForNothing(_) => "ERR",
    };
    Reply::Error(format!("{code} {failure}"))
}

/// Who leads: its fence and its value.
pub(super) fn leader(leader: Option<Leader>) -> [Reply; 2] {
    leader.map_or([Reply::Nil, Reply::Nil], |Leader { fence, value }| {
        [Reply::text(fence.to_string()), Reply::Bytes(value)]
    })
}

fn node(id: MemberId) -> Reply {
    Reply::integer(identity::number(id))
}

fn nodes(ids: &[MemberId]) -> Reply {
    Reply::Array(ids.iter().copied().map(node).collect())
}

fn or_nil<T>(value: Option<T>, reply: impl FnOnce(T) -> Reply) -> Reply {
    value.map_or(Reply::Nil, reply)
}

/// Which cluster a node belongs to, once it knows.
pub(super) fn cluster(cluster: Option<ClusterId>) -> Reply {
    or_nil(cluster, |cluster| Reply::text(cluster.to_string()))
}

/// How a node is.
pub(crate) fn status(engine: &Engine) -> Reply {
    let Some(status) = engine.look(vez_peer::Peer::status) else {
        return Reply::Map(vec![("state", Reply::text("starting"))]);
    };
    let (state, why, left) = standing(&status.standing, clock::now());
    Reply::Map(vec![
        ("node", node(status.id)),
        ("id", Reply::text(status.id.to_string())),
        ("cluster", cluster(status.cluster)),
        ("state", Reply::text(state)),
        ("because", Reply::text(why)),
        ("lease_left_ms", or_nil(left, Reply::integer)),
        ("view", or_nil(status.view, Reply::integer)),
        ("leader", or_nil(status.leader, node)),
        ("leader_id", or_nil(status.leader, |id| Reply::text(id.to_string()))),
        ("sessions", Reply::integer(status.sessions)),
        ("names", Reply::integer(status.names)),
        ("used_names", Reply::integer(status.used_names)),
        ("unacknowledged", Reply::integer(status.unacknowledged)),
        ("kept", Reply::integer(status.kept)),
        ("pledge_ms", or_nil(status.pledge, |pledge| Reply::integer(pledge / 1_000_000))),
        ("members", Reply::Array(status.members.iter().map(member).collect())),
        ("strangers", Reply::Array(engine.strangers().iter().map(stranger).collect())),
    ])
}

fn stranger((cluster, address): &(ClusterId, Address)) -> Reply {
    Reply::Map(vec![("cluster", Reply::text(cluster.to_string())), ("address", Reply::text(address.as_str()))])
}

fn member(member: &MemberStatus) -> Reply {
    Reply::Map(vec![
        ("node", node(member.id)),
        ("id", Reply::text(member.id.to_string())),
        ("address", Reply::text(member.address.as_str())),
        ("votes", Reply::integer(u8::from(member.votes))),
        ("since_view", Reply::integer(member.joined_in)),
    ])
}

/// Whether a node is a member: one word, one sentence, and for how long.
pub(crate) fn standing(standing: &Standings, now: Nanos) -> (&'static str, String, Option<u64>) {
    let ms = |until: &Nanos| until.saturating_sub(now) / 1_000_000;
    match standing {
        Standings::NoLeader { voters } if voters.is_empty() => {
            ("joining", "nobody has answered yet where it was told to join".into(), None)
        }
        Standings::NoLeader { voters } => {
            let voters: Vec<String> = voters.iter().map(|id| identity::number(*id).to_string()).collect();
            let why = format!("nobody leads: no majority of the nodes {} has been heard", voters.join(", "));
            ("joining", why, None)
        }
        Standings::Joining { leader } => {
            ("joining", format!("node {} was asked to let it in", identity::number(*leader)), None)
        }
        Standings::OldLeases { until: Nanos::MAX } => {
            ("waiting", "it leads, and what it says has not been agreed on yet".into(), None)
        }
        Standings::OldLeases { until } => {
            let why = format!("it waits for {} ms until all leases of before are over", ms(until));
            ("waiting", why, None)
        }
        Standings::Settling { lease_until } => {
            ("settling", "the members tell each other what they hold".into(), Some(ms(lease_until)))
        }
        Standings::Settled { lease_until } => ("ready", "it serves everything".into(), Some(ms(lease_until))),
        Standings::Leaving { lease_until } => {
            ("leaving", "it takes nothing new, and leaves".into(), Some(ms(lease_until)))
        }
        Standings::Stopped => ("stopped", "it has ceased to be a member, and begins anew".into(), None),
    }
}

/// How all nodes are.
pub(super) fn nodes_of((vitals, silent): &(Vec<Vitals>, Vec<MemberId>)) -> Reply {
    Reply::Map(vec![("nodes", Reply::Array(vitals.iter().map(vitals_of).collect())), ("silent", nodes(silent))])
}

fn vitals_of(vitals: &Vitals) -> Reply {
    let busy = |(name, share): &(Name, u32)| {
        Reply::Map(vec![("name", Reply::Bytes(name.as_bytes().to_vec())), ("millionths", Reply::integer(*share))])
    };
    Reply::Map(vec![
        ("node", node(vitals.member)),
        ("id", Reply::text(vitals.member.to_string())),
        ("state", Reply::text(vitals.state.clone())),
        ("view", or_nil(vitals.view, Reply::integer)),
        ("connections", Reply::integer(vitals.connections)),
        ("used_names", Reply::integer(vitals.used_names)),
        ("grants", Reply::integer(vitals.grants)),
        ("local_hits", Reply::integer(vitals.local_hits)),
        ("handovers", Reply::integer(vitals.handovers)),
        ("busiest", Reply::Array(vitals.busiest.iter().map(busy).collect())),
    ])
}

/// What all members know of a name.
pub(crate) fn picture(picture: &Picture) -> Reply {
    let first = picture.reports.first();
    let kind = picture.reports.iter().find_map(|report| report.kind);
    let all = |of: fn(&Report) -> Vec<Reply>| Reply::Array(picture.reports.iter().flat_map(of).collect());
    Reply::Map(vec![
        ("name", Reply::Bytes(picture.name.as_bytes().to_vec())),
        ("kind", or_nil(kind, |kind| Reply::text(kind_in_words(kind)))),
        ("view", or_nil(first.and_then(|report| report.view), Reply::integer)),
        ("home", or_nil(first.and_then(|report| report.home), node)),
        ("holders", all(|report| report.holders.iter().map(|held| holder(report.member, held)).collect())),
        ("waiters", Reply::integer(picture.reports.iter().map(|report| report.waiters).sum::<usize>())),
        ("waiting", all(|report| report.waiting.iter().map(|waiting| waiter(report.member, waiting)).collect())),
        ("because", all(|report| vec![because(report)])),
        ("silent", nodes(&picture.silent)),
    ])
}

fn holder(member: MemberId, held: &Held) -> Reply {
    Reply::Map(vec![
        ("node", node(member)),
        ("client", Reply::text(held.client.clone())),
        ("part", or_nil(held.part.clone(), Reply::text)),
        ("fence", or_nil(held.fence, |fence| Reply::text(fence.to_string()))),
        ("held_ms", Reply::integer(held.held_ms)),
    ])
}

fn waiter(member: MemberId, waiting: &Waiting) -> Reply {
    Reply::Map(vec![
        ("node", node(member)),
        ("client", Reply::text(waiting.client.clone())),
        ("part", or_nil(waiting.part.clone(), Reply::text)),
        ("waited_ms", Reply::integer(waiting.waited_ms)),
    ])
}

fn because(report: &Report) -> Reply {
    Reply::Map(vec![("node", node(report.member)), ("because", Reply::text(report.because.clone()))])
}

/// Which names are in use.
pub(crate) fn listing(listing: &Listing) -> Reply {
    Reply::Map(vec![
        ("names", Reply::Array(listing.names.iter().map(picture).collect())),
        ("more", Reply::integer(u8::from(listing.more))),
        ("silent", nodes(&listing.silent)),
    ])
}

/// What a name stands for.
fn kind_in_words(kind: Kind) -> String {
    match kind {
        Kind::Lock => "lock".into(),
        Kind::Semaphore { units } => format!("semaphore of {units}"),
        Kind::Group => "group".into(),
        Kind::ReadWrite => "read-write lock".into(),
        Kind::Election => "election".into(),
    }
}
