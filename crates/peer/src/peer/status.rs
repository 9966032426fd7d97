//! How a process is, and what it knows, for those who ask.

use alloc::{collections::BTreeSet, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{Peer, standing::Standing};
use crate::{
    charter::Charter,
    identity::{Address, ClusterId, Incarnation, MemberId},
    lane::Lane,
    name::Name,
    shard::{Nanos, Why},
    view::{View, ViewNumber},
};

/// How a process is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its disk.
    pub id: MemberId,
    /// Itself.
    pub incarnation: Incarnation,
    /// Which cluster it belongs to, if that is known.
    pub cluster: Option<ClusterId>,
    /// The last view that it has heard of.
    pub view: Option<ViewNumber>,
    /// Who was in that.
    pub members: Vec<MemberStatus>,
    /// Who leads the agreement on views, as far as is known.
    pub leader: Option<MemberId>,
    /// Whether it is one of the members.
    pub standing: Standings,
    /// How many sessions there are.
    pub sessions: usize,
    /// How many locks are kept here for whoever knows a value.
    pub kept: usize,
    /// So long after the end of its lease something may be kept that this process kept, if anything may.
    pub pledge: Option<Nanos>,
    /// How many names something is known of here in this view.
    pub names: usize,
    /// How many names have clients here.
    pub used_names: usize,
    /// How many messages to other members have not been acknowledged.
    pub unacknowledged: usize,
}

/// One of the members.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its disk.
    pub id: MemberId,
    /// Its process.
    pub incarnation: Incarnation,
    /// Where it is.
    pub address: Address,
    /// Its first view.
    pub joined_in: ViewNumber,
    /// Whether it has a vote about views.
    pub votes: bool,
}

/// Whether a process is a member, and what it waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standings {
    /// It is not: it has heard of nobody who leads, and so no majority of these may be there.
    NoLeader {
        /// Who votes, as far as is known.
        voters: Vec<MemberId>,
    },
    /// It is not: this one was asked, and says when.
    Joining {
        /// Who leads.
        leader: MemberId,
    },
    /// It is not: it leads, but processes that nobody has heard of since may hold what they held until then.
    OldLeases {
        /// On this machine's clock.
        until: Nanos,
    },
    /// It is, and is getting settled in the view.
    Settling {
        /// When its lease ends, unless it is renewed, on this machine's clock.
        lease_until: Nanos,
    },
    /// It is, and serves everything.
    Settled {
        /// When its lease ends, unless it is renewed, on this machine's clock.
        lease_until: Nanos,
    },
    /// It is, takes no new requests, and leaves.
    Leaving {
        /// When its lease ends, unless it is renewed, on this machine's clock.
        lease_until: Nanos,
    },
    /// It was, and is not any more.
    Stopped,
}

impl Peer {
    /// How it is.
    #[must_use]
    pub fn status(&self) -> Status {
        let names: Vec<_> = self.lanes.iter().map(|lane| lane.shard.names()).collect();
        let views = self.agreement.views();
        let voters: BTreeSet<MemberId> = self.agreement.config().all_voters().collect();
        let member = |member: &crate::view::Member| MemberStatus {
            id: member.id,
            incarnation: member.incarnation,
            address: member.address.clone(),
            joined_in: member.joined_in,
            votes: voters.contains(&member.id),
        };
        Status {
            id: self.me.id,
            incarnation: self.me.incarnation,
            cluster: self.cluster,
            view: views.map(|views| views.number()),
            members: views.into_iter().flat_map(|views| views.members().values().map(member)).collect(),
            leader: self.agreement.leader(),
            standing: self.standings(voters),
            sessions: self.sessions.len(),
            kept: self.keeping.len(),
            pledge: Some(self.pledge().ttl).filter(|ttl| *ttl > 0),
            names: names.iter().map(|(known, _)| known).sum(),
            used_names: names.iter().map(|(_, used)| used).sum(),
            unacknowledged: self.lanes.iter().map(Lane::unacknowledged).sum(),
        }
    }

    fn standings(&self, voters: BTreeSet<MemberId>) -> Standings {
        let member = match &self.standing {
            Standing::Stopped => return Standings::Stopped,
            Standing::Outside => return self.outside(voters),
            Standing::Member(member) => member,
        };
        let lease_until = member.lease.stop(&self.charter);
        if member.leaving {
            Standings::Leaving { lease_until }
        } else if self.is_settled() {
            Standings::Settled { lease_until }
        } else {
            Standings::Settling { lease_until }
        }
    }

    fn outside(&self, voters: BTreeSet<MemberId>) -> Standings {
        match (self.agreement.leads(), self.agreement.leader()) {
            (Some(leading), _) => {
                let lasts = self.charter.lease.saturating_add(self.longest_pledge());
                let waits = self.charter.of_others(lasts);
                let until = leading.since.map_or(Nanos::MAX, |since| since.saturating_add(waits));
                Standings::OldLeases { until }
            }
            (None, Some(leader)) => Standings::Joining { leader },
            (None, None) => Standings::NoLeader { voters: voters.into_iter().collect() },
        }
    }

    /// What any member has pledged at most.
    fn longest_pledge(&self) -> Nanos {
        let Some(views) = self.agreement.views() else { return 0 };
        let pledges = views.members().values().map(|member| views.pledge(member.id, member.incarnation).ttl);
        pledges.max().unwrap_or(0)
    }

    /// Whether everything that is asked for here can be served.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.member().is_some() && self.lanes.iter().all(|lane| lane.shard.is_settled())
    }

    /// The view that it is a member of.
    #[must_use]
    pub fn view(&self) -> Option<&View> {
        self.member().map(|member| &member.view)
    }

    /// Why somebody would have to wait for a name here.
    #[must_use]
    pub fn why(&self, name: &Name) -> Why {
        self.lanes[usize::from(name.shard(self.charter.shards))].shard.why(name)
    }

    /// What all members go by.
    #[must_use]
    pub fn charter(&self) -> &Charter {
        &self.charter
    }

    /// Which cluster it belongs to, once that is known.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.cluster
    }

    /// Where others reach it.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.me.address
    }

    /// Its disk.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.me.id
    }

    /// The names that begin so, come after that one and have clients here, in the order of their bytes, up to a number of them.
    #[must_use]
    pub fn used_names(&self, prefix: &[u8], after: Option<&Name>, most: usize) -> Vec<Name> {
        let mut names: Vec<Name> = Vec::new();
        for lane in &self.lanes {
            names.extend(lane.shard.used_names(prefix, after).take(most).cloned());
        }
        names.sort_unstable_by(Name::by_bytes);
        names.truncate(most);
        names
    }
}
