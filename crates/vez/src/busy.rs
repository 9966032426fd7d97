//! Which names are asked for most, by a sample of what is granted.
//!
//! A node may know of millions of names and grant a million turns a second, so neither are all names counted nor all grants: one
//! grant of some is, and of names as many as are shown, with some room. A name that is new takes the place of the one that was
//! seen least, and its count (the *space-saving* algorithm), so a name that is granted often gets in and stays. Every now and then
//! all counts are halved: what was busy an hour ago is not busy now.

use rustc_hash::FxHashMap;
use vez_peer::name::Name;

/// Of so many grants one is looked at.
const ONE_OF: u64 = 16;
/// So many names are counted.
const MOST_NAMES: usize = 64;
/// After so many samples all counts are halved.
const HALVED_AFTER: u64 = 4096;

#[derive(Default)]
pub(crate) struct Busy {
    counts: FxHashMap<Name, u64>,
    samples: u64,
}

impl Busy {
    /// Something was granted, by the request of that number.
    pub(crate) fn note(&mut self, request: u64, name: &Name) {
        // Clients take turns in patterns; the golden ratio has none.
        if request.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 & (ONE_OF - 1) == 0 {
            self.count(name);
        }
    }

    fn count(&mut self, name: &Name) {
        self.samples += 1;
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        } else if self.counts.len() < MOST_NAMES {
            self.counts.insert(name.clone(), 1);
        } else if let Some((least, count)) = self.counts.iter().min_by_key(|(_, count)| **count) {
            let (least, count) = (least.clone(), *count);
            self.counts.remove(&least);
            self.counts.insert(name.clone(), count + 1);
        }
        if self.samples >= HALVED_AFTER {
            self.samples /= 2;
            self.counts.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
        }
    }

    /// The names that were granted most, each with its share of all grants in millionths.
    pub(crate) fn busiest(&self, most: usize) -> Vec<(Name, u32)> {
        let share = |count: u64| u32::try_from(count * 1_000_000 / self.samples.max(1)).unwrap_or(1_000_000);
        let mut all: Vec<_> = self.counts.iter().map(|(name, count)| (name.clone(), share(*count))).collect();
        all.sort_by(|(one, its), (other, others)| others.cmp(its).then_with(|| one.by_bytes(other)));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_busy_name_is_found_among_many() {
        let mut busy = Busy::default();
        for request in 0..400_000 {
            let one = if request % 10 < 3 { name("hot") } else { name(&request.to_string()) };
            busy.note(request, &one);
        }
        let busiest = busy.busiest(3);
        assert_eq!(busiest[0].0, name("hot"));
        assert!((200_000..400_000).contains(&busiest[0].1), "{busiest:?}");
        assert!(busy.counts.len() <= MOST_NAMES);
    }

    #[test]
    fn what_was_busy_is_not_busy_for_ever() {
        let mut busy = Busy::default();
        for (count, text) in [(100_000, "once"), (400_000, "now")] {
            for request in 0..count {
                busy.note(request, &name(text));
            }
        }
        let busiest = busy.busiest(2);
        assert_eq!(busiest[0].0, name("now"));
        assert!(busiest.get(1).is_none_or(|(_, share)| *share < 100_000), "{busiest:?}");
    }
}
