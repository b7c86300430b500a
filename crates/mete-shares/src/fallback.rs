//! What has become of a scheduler of sched_ext that has failed.

use std::time::Instant;

use crate::retry::Retry;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Fallback {
    retry: Retry,
    /// Its policy decides outside the kernel.
    is_outside: bool,
    restarts: u64,
    verdict: Option<String>,
    /// What a policy that was replaced has said, and what took its place: said already.
    replaced: Option<(String, &'static str)>,
    news: Vec<String>,
}

impl Fallback {
    /// It has failed, or could not be started again. Meanwhile the kernel's own scheduler rules, in this way.
    pub fn fail(&mut self, is_outside: bool, verdict: String, meanwhile: &str) {
        let pause = self.retry.fail(Instant::now());
        self.news.push(format!(
            "{verdict}. The kernel's own scheduler rules{meanwhile}; the next try is in {} s",
            pause.as_secs()
        ));
        self.is_outside = is_outside;
        self.verdict = Some(verdict);
        self.replaced = None;
    }

    pub fn succeed(&mut self) {
        self.retry.succeed(Instant::now());
        self.restarts += 1;
        self.tell("sched_ext rules again".into());
    }

    /// A policy that has failed and what took its place, if one has. Whether that is new.
    pub fn note(&mut self, replaced: Option<(String, &'static str)>) -> bool {
        let news = replaced.as_ref().filter(|_| self.replaced != replaced);
        let news = news.map(|(failed, policy)| format!("{failed}; {policy} rules in its place"));
        let is_new = news.is_some();
        self.news.extend(news);
        self.replaced = replaced;
        is_new
    }

    pub fn tell(&mut self, news: String) {
        self.news.push(news);
    }

    /// What was not asked for yet.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// Whether the scheduler is to be started again.
    pub fn is_pending(&self) -> bool {
        self.retry.is_pending()
    }

    pub fn is_due(&self) -> bool {
        self.retry.is_due(Instant::now())
    }

    pub fn is_outside(&self) -> bool {
        self.is_outside
    }

    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// What has failed last.
    pub fn verdict(&self) -> Option<&str> {
        self.verdict.as_deref()
    }
}
