//! The timers that are set at a node.

/// A map from timers to values, as a sorted list: a node has few timers, and a tree is much more code, compiled for each
/// algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Timers<T, V>(Vec<(T, V)>);

impl<T, V> Default for Timers<T, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + Ord, V> Timers<T, V> {
    fn find(&self, timer: T) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(&timer))
    }

    /// Sets a timer, or sets it anew.
    pub(crate) fn set(&mut self, timer: T, known: V) {
        match self.find(timer) {
            Ok(at) => self.0[at].1 = known,
            Err(at) => self.0.insert(at, (timer, known)),
        }
    }

    /// What is known of a timer, if it is set.
    pub(crate) fn get(&self, timer: T) -> Option<&V> {
        self.find(timer).ok().map(|at| &self.0[at].1)
    }

    /// A timer fires or is cancelled: what was known of it, if it was set.
    pub(crate) fn remove(&mut self, timer: T) -> Option<V> {
        self.find(timer).ok().map(|at| self.0.remove(at).1)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(T, V)> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (T, V)> {
        self.0.iter_mut()
    }
}
