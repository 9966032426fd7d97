//! Asking all members: what is known of names anywhere in the cluster.

use std::{
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::{
    sync::oneshot,
    task::coop::consume_budget,
    time::{Instant, timeout, timeout_at},
};
use vez_peer::{
    fence::Fence,
    identity::{Address, MemberId},
    keep::KEEPER,
    name::Name,
};

use crate::{
    clock, identity,
    inquiry::{Answer, MOST_NAMES, MOST_SIZE, Question, Report, Vitals},
    node::{Inner, Node},
    resp,
    wire::Letter,
};

/// So long a member has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many of the busiest names each node tells.
const MOST_BUSIEST: usize = 16;

/// Questions that were not answered yet.
#[derive(Default)]
pub(crate) struct Inquiries {
    next: AtomicU64,
    waiting: Mutex<FxHashMap<u64, oneshot::Sender<Answer>>>,
}

/// What all members know of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// The name.
    pub name: Name,
    /// What each of them says.
    pub reports: Vec<Report>,
    /// Who said nothing in time.
    pub silent: Vec<MemberId>,
}

/// Names that clients hold or wait for, anywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// What is known of each, by the members whose clients use it.
    pub names: Vec<Picture>,
    /// Who said nothing in time: there may be more.
    pub silent: Vec<MemberId>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// Why a lock is not taken from who holds it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReleaseError {
    /// Nobody holds it so.
    #[error("nobody holds {0} with the fence {1}; SHOW {0} (`vez show {0}`) tells who does now")]
    NotHeld(Name, Fence),
    /// It may be held by one that cannot be asked.
    #[error("{} did not answer, and may hold {name} with the fence {fence}; evict the node instead", words(.silent))]
    Unreachable {
        /// What.
        name: Name,
        /// Which acquisition.
        fence: Fence,
        /// Who did not answer.
        silent: Vec<MemberId>,
    },
}

impl Node {
    /// What all members know of a name.
    pub async fn show(&self, name: &Name) -> Picture {
        self.inner().show(name).await
    }

    /// The names that begin so and that clients hold or wait for, anywhere, up to a number of them.
    pub async fn list(&self, prefix: &[u8], most: usize) -> Listing {
        self.inner().list(prefix, most).await
    }

    /// Takes a lock from who holds it, and tells that client.
    ///
    /// # Errors
    /// If nobody holds it with that fence, or somebody might who cannot be asked.
    pub async fn force_release(&self, name: &Name, fence: Fence) -> Result<(), ReleaseError> {
        self.inner().force_release(name, fence).await
    }
}

impl Inner {
    pub(crate) async fn show(&self, name: &Name) -> Picture {
        let (answers, silent) = self.ask_all(&Question::Show(name.clone())).await;
        let shown = |answer| match answer {
            Answer::Shown(report) => Some(*report),
            Answer::Listed(..) | Answer::Vitals(_) | Answer::ByValue(_) | Answer::Released(_) => None,
        };
        Picture {
            name: name.clone(),
            reports: answers.into_iter().filter_map(|(_, answer)| shown(answer)).collect(),
            silent,
        }
    }

    pub(crate) async fn list(&self, prefix: &[u8], most: usize) -> Listing {
        let mut names: FxHashMap<Name, Vec<Report>> = FxHashMap::default();
        let (mut silent, mut more) = (Vec::new(), false);
        let mut open: Vec<Member> = self.members().into_iter().map(Member::new).collect();
        while !open.is_empty() {
            let question = |member: &Member| Question::List { prefix: prefix.to_vec(), after: member.after.clone() };
            let asked = open.iter().map(|member| (member.id, &member.address, question(member)));
            let answers = self.ask_each(asked).await;
            for (member, answer) in open.iter_mut().zip(answers) {
                let Some(Answer::Listed(reports, there_is_more)) = answer else {
                    silent.push(member.id);
                    member.done = true;
                    continue;
                };
                member.after = reports.last().map(|report| report.name.clone());
                member.told += reports.len();
                for report in reports {
                    names.entry(report.name.clone()).or_default().push(report);
                }
                // Of each as many as are wanted of all: what is shown is then all that there is to each name.
                member.done = !there_is_more || member.after.is_none() || member.told >= most;
                more |= there_is_more && member.told >= most;
            }
            open.retain(|member| !member.done);
        }
        more |= names.len() > most;
        let picture = |(name, reports)| Picture { name, reports, silent: Vec::new() };
        let mut names: Vec<Picture> = names.into_iter().map(picture).collect();
        names.sort_unstable_by(|one, other| one.name.by_bytes(&other.name));
        names.truncate(most);
        Listing { names, silent, more }
    }

    /// How all members are, and who said nothing in time.
    pub(crate) async fn vitals_of_all(&self) -> (Vec<Vitals>, Vec<MemberId>) {
        let (answers, silent) = self.ask_all(&Question::Vitals).await;
        let vitals = |answer| match answer {
            Answer::Vitals(vitals) => Some(*vitals),
            Answer::Shown(_) | Answer::Listed(..) | Answer::ByValue(_) | Answer::Released(_) => None,
        };
        (answers.into_iter().filter_map(|(_, answer)| vitals(answer)).collect(), silent)
    }

    pub(crate) async fn force_release(&self, name: &Name, fence: Fence) -> Result<(), ReleaseError> {
        let (answers, silent) = self.ask_all(&Question::Release { name: name.clone(), fence }).await;
        if answers.iter().any(|(_, answer)| *answer == Answer::Released(true)) {
            Ok(())
        } else if silent.is_empty() {
            Err(ReleaseError::NotHeld(name.clone(), fence))
        } else {
            Err(ReleaseError::Unreachable { name: name.clone(), fence, silent })
        }
    }

    /// Answers what somebody else wants to know.
    pub(crate) fn answer(self: &Arc<Self>, number: u64, answer_to: &Address, question: Question) {
        if let Question::ByValue { name, value, wish } = question {
            return self.answer_by_value(number, answer_to, &name, value.as_deref(), wish);
        }
        if let Some(answer) = self.know(question) {
            self.engine.send(answer_to, &Letter::Answer { number, answer });
        }
    }

    /// Somebody else has answered.
    pub(crate) fn answered(&self, number: u64, answer: Answer) {
        if let Some(asked) = self.inquiries.waiting.lock().remove(&number) {
            let _ = asked.send(answer); // If nobody waits for it any more, it was late.
        }
    }

    async fn ask_all(&self, question: &Question) -> (Vec<(MemberId, Answer)>, Vec<MemberId>) {
        let members = self.members();
        let answers = self.ask_each(members.iter().map(|(id, address)| (*id, address, question.clone()))).await;
        let (mut answered, mut silent) = (Vec::new(), Vec::new());
        for ((id, _), answer) in members.into_iter().zip(answers) {
            match answer {
                Some(answer) => answered.push((id, answer)),
                None => silent.push(id),
            }
        }
        (answered, silent)
    }

    /// Asks all but this one, until one of the answers is enough: the answers, and who has said nothing so far. None, if this node
    /// is no member and knows of nobody.
    pub(crate) async fn ask_others(
        &self,
        question: &Question,
        is_enough: impl Fn(&Answer) -> bool,
    ) -> Option<(Vec<Answer>, Vec<MemberId>)> {
        let mut members = self.members();
        if members.is_empty() {
            return None;
        }
        members.retain(|(_, address)| *address != self.settings.address);
        let pose =
            |(id, address): &(MemberId, Address)| (*id, Box::pin(self.pose(*id, address, question.clone()).answer()));
        let mut open: Vec<_> = members.iter().map(pose).collect();
        let (mut answers, mut silent) = (Vec::new(), Vec::new());
        let enough = poll_fn(|cx| {
            open.retain_mut(|(id, answer)| match answer.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    silent.extend(answer.is_none().then_some(*id));
                    answers.extend(answer);
                    false
                }
            });
            if open.is_empty() || answers.iter().any(&is_enough) { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = timeout(PATIENCE, enough).await; // Who has not answered by then is silent.
        silent.extend(open.into_iter().map(|(id, _)| id));
        Some((answers, silent))
    }

    /// Asks some members, all at the same time; nothing comes of those who say nothing in time.
    async fn ask_each<'a>(
        &self,
        questions: impl Iterator<Item = (MemberId, &'a Address, Question)>,
    ) -> Vec<Option<Answer>> {
        consume_budget().await; // What this node knows itself, it says at once.
        let posed: Vec<_> = questions.map(|(id, address, question)| self.pose(id, address, question)).collect();
        let deadline = Instant::now() + PATIENCE;
        let mut answers = Vec::new();
        for posed in posed {
            answers.push(timeout_at(deadline, posed.answer()).await.ok().flatten());
        }
        answers
    }

    fn pose(&self, id: MemberId, address: &Address, question: Question) -> Posed<'_> {
        if *address == self.settings.address {
            return Posed::Known(self.know(question));
        }
        let number = self.inquiries.next.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = oneshot::channel();
        self.inquiries.waiting.lock().insert(number, tell);
        let answer_to = self.settings.address.clone();
        tracing::trace!(to = %identity::words(id), ?question, "asks");
        self.engine.send(address, &Letter::Question { number, answer_to, question });
        Posed::Asked { inner: self, number, answer }
    }

    /// Who is there, and where.
    fn members(&self) -> Vec<(MemberId, Address)> {
        let members = self.engine.look(|peer| peer.status().members).unwrap_or_default();
        members.into_iter().map(|member| (member.id, member.address)).collect()
    }

    /// What this node itself knows.
    fn know(&self, question: Question) -> Option<Answer> {
        match question {
            Question::Show(name) => self.report(name).map(|report| Answer::Shown(Box::new(report))),
            Question::List { prefix, after } => {
                let mut names = self.engine.look(|peer| peer.used_names(&prefix, after.as_ref(), MOST_NAMES))?;
                let mut more = names.len() == MOST_NAMES;
                let (mut reports, mut size) = (Vec::new(), 0);
                for name in names.drain(..) {
                    let report = self.report(name)?;
                    size += report.size();
                    if size > MOST_SIZE && !reports.is_empty() {
                        more = true;
                        break;
                    }
                    reports.push(report);
                }
                Some(Answer::Listed(reports, more))
            }
            Question::Vitals => self.vitals().map(|vitals| Answer::Vitals(Box::new(vitals))),
            // It may take a while, and is answered then.
            Question::ByValue { .. } => None,
            Question::Release { name, fence } => Some(Answer::Released(self.revoke(&name, fence))),
        }
    }

    fn vitals(&self) -> Option<Vitals> {
        let (status, counts) = self.engine.look(|peer| (peer.status(), peer.counts()))?;
        let (grants, local_hits) = self.engine.metrics.totals();
        Some(Vitals {
            member: status.id,
            state: resp::standing(&status.standing, clock::now()).0.to_owned(),
            view: status.view,
            connections: self.engine.metrics.connections.get().unsigned_abs(),
            used_names: status.used_names,
            grants,
            local_hits,
            handovers: counts.handovers,
            busiest: self.engine.busiest(MOST_BUSIEST),
        })
    }

    fn report(&self, name: Name) -> Option<Report> {
        let now = clock::now();
        let (id, why, setter) = self.engine.look(|peer| (peer.id(), peer.why(&name), peer.setter(&name)))?;
        let label = |session| match session {
            KEEPER => setter.as_deref().unwrap_or_default().to_owned(),
            session => self.engine.session(session).map_or_else(String::new, |session| session.label.to_string()),
        };
        Some(Report::new(id, name, why, now, label))
    }

    /// Takes something from clients of this node: from all who share that fence. False, if none holds it so.
    fn revoke(&self, name: &Name, fence: Fence) -> bool {
        let Some(why) = self.engine.look(|peer| peer.why(name)) else { return false };
        let mut revoked = false;
        for holder in why.holders.into_iter().filter(|holder| holder.fence == Some(fence)) {
            if holder.session == Some(KEEPER) {
                revoked |= self.engine.revoke_kept(name, fence);
                continue;
            }
            let session = holder.session.and_then(|session| self.engine.session(session));
            let (Some(session), Some(since), Some(kind)) = (session, holder.since, why.kind) else { continue };
            session.revoke(name, fence);
            let _ = self.engine.release(&session, (name, fence), (kind, since)); // Its client may have been faster.
            if session.is_whole() {
                self.engine.end(&session);
            }
            revoked = true;
        }
        revoked
    }
}

/// A member that is being asked for its names.
struct Member {
    id: MemberId,
    address: Address,
    /// The last that it has told of.
    after: Option<Name>,
    /// How many that were.
    told: usize,
    done: bool,
}

impl Member {
    fn new((id, address): (MemberId, Address)) -> Self {
        Self { id, address, after: None, told: 0, done: false }
    }
}

/// A question that was posed.
enum Posed<'a> {
    Known(Option<Answer>),
    Asked { inner: &'a Inner, number: u64, answer: oneshot::Receiver<Answer> },
}

impl Posed<'_> {
    async fn answer(mut self) -> Option<Answer> {
        match &mut self {
            Self::Known(answer) => answer.take(),
            Self::Asked { answer, .. } => answer.await.ok(),
        }
    }
}

impl Drop for Posed<'_> {
    fn drop(&mut self) {
        if let Self::Asked { inner, number, .. } = self {
            inner.inquiries.waiting.lock().remove(number);
        }
    }
}

pub(crate) fn words(members: &[MemberId]) -> String {
    members.iter().map(|member| identity::words(*member)).collect::<Vec<_>>().join(", ")
}
