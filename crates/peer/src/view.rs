//! A view: who the members are, from one agreed moment to the next.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use vez_algorithms::NodeId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    identity::{Address, Incarnation, MemberId},
    name::Name,
};

/// The number of a view. A later view has a larger one; it stands above the counter in every fence.
pub type ViewNumber = u64;

/// One who takes part in a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its disk.
    pub id: MemberId,
    /// Its process.
    pub incarnation: Incarnation,
    /// Where it is.
    pub address: Address,
    /// The first view of this incarnation.
    pub joined_in: ViewNumber,
    /// When it sent the Join that was answered by that view, on its own clock: its first lease counts from there.
    pub join_sent: u64,
}

/// Who the members are. Within a view they are numbered from 0, as algorithms want it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct View {
    /// Its number.
    pub number: ViewNumber,
    /// The members, in the order of their ids.
    pub members: Vec<Member>,
}

impl View {
    /// The number of a member within this view.
    #[must_use]
    pub fn position(&self, id: MemberId) -> Option<NodeId> {
        self.members.binary_search_by_key(&id, |member| member.id).ok().map(NodeId::from_index)
    }

    /// The member of that number.
    #[must_use]
    pub fn member(&self, node: NodeId) -> &Member {
        &self.members[node.index()]
    }

    /// A member, if this very process is one.
    #[must_use]
    pub fn process(&self, id: MemberId, incarnation: Incarnation) -> Option<NodeId> {
        self.position(id).filter(|node| self.member(*node).incarnation == incarnation)
    }

    /// Whose word is needed before anything new is granted: all who were there in an earlier view, and may hold something.
    pub fn older(&self) -> impl Iterator<Item = NodeId> + '_ {
        NodeId::all(self.members.len()).filter(|node| self.member(*node).joined_in < self.number)
    }

    /// The home of a name: of those who were there in an earlier view (of all, if nobody was) the one with the highest
    /// hash of name and id. Every build must agree on it: two homes are two tokens.
    ///
    /// # Panics
    /// If the view has no members.
    #[must_use]
    pub fn home(&self, name: &Name) -> NodeId {
        let highest = |nodes: &mut dyn Iterator<Item = NodeId>| {
            nodes.max_by_key(|node| {
                let id = self.member(*node).id;
                (xxh3_64_with_seed(name.as_bytes(), id.0), id)
            })
        };
        let any = || highest(&mut NodeId::all(self.members.len()));
        highest(&mut self.older()).or_else(any).expect("a view that somebody is in has members")
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec::Vec};

    use super::*;

    fn view(members: &[(u64, u64)]) -> View {
        let member = |&(id, joined_in)| Member {
            id: MemberId(id),
            incarnation: Incarnation(1),
            address: Address::new("somewhere"),
            joined_in,
            join_sent: 0,
        };
        View { number: 9, members: members.iter().map(member).collect() }
    }

    fn homes(view: &View) -> Vec<u32> {
        (0..12).map(|i| view.home(&Name::new(format!("orders/{i}").as_bytes()).unwrap()).0).collect()
    }

    /// These numbers must never change: two builds that disagree make two tokens.
    #[test]
    fn homes_are_the_same_in_every_build() {
        assert_eq!(homes(&view(&[(1, 3), (2, 3), (3, 3)])), GOLDEN);
        let shards: Vec<u16> = (0..12).map(|i| Name::new(format!("orders/{i}").as_bytes()).unwrap().shard(8)).collect();
        assert_eq!(shards, GOLDEN_SHARDS);
    }

    const GOLDEN: [u32; 12] = [0, 1, 2, 2, 1, 0, 1, 1, 1, 2, 1, 2];
    const GOLDEN_SHARDS: [u16; 12] = [6, 3, 4, 3, 2, 7, 3, 0, 4, 1, 5, 6];

    #[test]
    fn who_is_new_is_no_home_unless_all_are() {
        assert!(homes(&view(&[(1, 3), (2, 9), (3, 3)])).iter().all(|home| *home != 1));
        assert_eq!(homes(&view(&[(1, 9), (2, 9), (3, 9)])), homes(&view(&[(1, 3), (2, 3), (3, 3)])));
    }

    #[test]
    fn who_leaves_moves_only_its_own_names() {
        let (three, two) = (homes(&view(&[(1, 3), (2, 3), (3, 3)])), homes(&view(&[(1, 3), (2, 3)])));
        assert!(three.iter().zip(&two).all(|(before, after)| before == after || *before == 2));
    }
}
