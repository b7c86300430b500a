//! Shares from a file (TOML): what the options of `mete schedule` say, for a service that starts with the
//! machine.
//!
//! ```toml
//! policy = "vtrr"                    # left out, it is vtrr
//! by = "auto"                        # left out, it is auto
//! parameters = "/run/mete-shares"    # left out, nothing is mounted
//!
//! [[domain]]
//! name = "web"
//! selectors = ["cgroup:/web"]
//! share = 3                          # left out, it is 1
//! limit = 1.5                        # left out, there is none: the most processors, by weights only
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::slice;

use mete_base::regular;
use mete_base::unknown_key::UnknownKey;
use mete_sched::domains::{ShareError, SharedDomain};
use serde::Deserialize;
use toml::Spanned;

use crate::{By, SharePolicy};

/// The largest file. A domain takes some hundred bytes, and there may be a thousand.
const LARGEST: u64 = 256 * 1024;

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The policy.
    pub policy: SharePolicy,
    /// The means by which shares are enforced.
    pub by: Option<By>,
    /// Where the parameters are mounted.
    pub parameters: Option<PathBuf>,
    /// The domains, in the order in which they take precedence.
    pub domains: Vec<SharedDomain>,
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// There is no such key.
    #[error("{}, line {line}: there is no key {:?}{}", path.display(), key.written, key.question())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What was written, and what there is.
        key: UnknownKey,
    },
    /// It is not in the form above; the message names the line.
    #[error("{}: {source}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What was expected where.
        source: Box<toml::de::Error>,
    },
    /// There is no such means.
    #[error("{}, line {line}: there is no means {by:?}: there are {}", path.display(), By::ALL.map(By::name).join(", "))]
    NoMeans {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What was written.
        by: String,
    },
    /// There is no such policy.
    #[error("{}, line {line}: there is no policy {policy:?}{}", path.display(), SharePolicy::meant(policy))]
    NoPolicy {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What was written.
        policy: String,
    },
    /// A domain or its share is wrong.
    #[error("{}, line {line}: domain {name:?}: {source}", path.display())]
    Domain {
        /// The file.
        path: PathBuf,
        /// Where it has its name.
        line: usize,
        /// The domain.
        name: String,
        /// What is wrong with it.
        source: Box<ShareError>,
    },
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    policy: Option<Spanned<String>>,
    by: Option<Spanned<String>>,
    parameters: Option<PathBuf>,
    #[serde(default, rename = "domain")]
    domains: Vec<WrittenDomain>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDomain {
    name: Spanned<String>,
    selectors: Selectors,
    share: Option<f64>,
    limit: Option<f64>,
}

/// One selector or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "selectors are texts in brackets, such as [\"cgroup:/web\"], or one text")]
enum Selectors {
    One(String),
    Several(Vec<String>),
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.into(), source };
        let bytes = regular::read(path, LARGEST).map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST {
            return Err(unreadable(io::Error::other("it has more than 256 KiB")));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| unreadable(io::Error::other("it is no text in UTF-8")))?;
        Config::parse(&text, path)
    }

    /// Reads the text of a file that has this path.
    fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let file = File { path, text };
        let Written { policy, by, parameters, domains } =
            toml::from_str(text).map_err(|source| file.refused(source))?;
        let policy = policy.map_or(Ok(SharePolicy::default()), |name| file.policy(&name))?;
        let by = by.map(|name| file.by(&name)).transpose()?;
        let domains = domains.into_iter().map(|domain| file.domain(&domain)).collect::<Result<_, _>>()?;
        Ok(Config { policy, by, parameters, domains })
    }
}

/// A file, for what is said of it.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    /// Why the text was refused.
    fn refused(&self, source: toml::de::Error) -> ConfigError {
        let (path, at) = (self.path.into(), source.span().map(|span| span.start));
        match (UnknownKey::in_message(source.message()), at) {
            (Some(key), Some(at)) => ConfigError::NoKey { path, line: self.line(at), key },
            _ => ConfigError::Form { path, source: Box::new(source) },
        }
    }

    fn policy(&self, name: &Spanned<String>) -> Result<SharePolicy, ConfigError> {
        let (policy, line) = (name.get_ref(), self.line(name.span().start));
        let unknown = || ConfigError::NoPolicy { path: self.path.into(), line, policy: policy.clone() };
        SharePolicy::named(policy).ok_or_else(unknown)
    }

    fn by(&self, name: &Spanned<String>) -> Result<By, ConfigError> {
        let (by, line) = (name.get_ref(), self.line(name.span().start));
        By::named(by).ok_or_else(|| ConfigError::NoMeans { path: self.path.into(), line, by: by.clone() })
    }

    fn domain(&self, written: &WrittenDomain) -> Result<SharedDomain, ConfigError> {
        let selectors = match &written.selectors {
            Selectors::One(selector) => slice::from_ref(selector),
            Selectors::Several(selectors) => selectors,
        };
        let (name, line) = (written.name.get_ref(), self.line(written.name.span().start));
        let selectors = selectors.iter().map(String::as_str);
        let domain = SharedDomain::new(name, selectors, written.share, written.limit);
        domain.map_err(|source| ConfigError::Domain {
            path: self.path.into(),
            line,
            name: name.clone(),
            source: Box::new(source),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, "shares.toml".as_ref()).map_err(|error| error.to_string())
    }

    #[test]
    fn vtrr_7_a_file_says_what_options_say() {
        let text = "
            policy = 'stride'
            by = 'dispatcher'
            parameters = '/run/x'
            [[domain]]
            name = 'web'
            selectors = ['pid:1', 'comm:nginx']
            share = 2.5
            [[domain]]
            name = 'rest'
            selectors = 'user:0'
        ";
        let domain = |text: &str| SharedDomain::parse(text.as_ref()).unwrap();
        let expected = Config {
            policy: SharePolicy::named("stride").unwrap(),
            by: Some(By::Dispatcher),
            parameters: Some("/run/x".into()),
            domains: vec![domain("web=pid:1,comm:nginx,share=2.5"), domain("rest=user:0")],
        };
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(""), Ok(Config::default()));
        for by in ["sched_ext", "ext"] {
            assert_eq!(parse(&format!("by = '{by}'")).unwrap().by, Some(By::SchedExt));
        }
    }

    #[test]
    fn vtrr_7_a_selector_in_a_file_may_contain_what_separates_them_on_a_command_line() {
        let config =
            parse("[[domain]]\nname = 'web'\nselectors = ['comm:a,share=9', 'comm:b,pid:1']").unwrap();
        let [domain] = &config.domains[..] else { panic!("{config:?}") };
        assert_eq!((domain.spec.selectors.len(), domain.weight), (2, None));
    }

    #[test]
    fn vtrr_7_what_is_wrong_in_a_file_is_named_with_its_place() {
        let domain = |rest: &str| format!("[[domain]]\nname = 'web'\n{rest}");
        for (text, expected) in [
            ("\npolisy = 'vtrr'".into(), "line 2: there is no key \"polisy\"; did you mean policy?"),
            ("policy = 'strid'".into(), "line 1: there is no policy \"strid\"; did you mean stride?"),
            ("policy = 'fast'".into(), "there is no policy \"fast\": there are vtrr, "),
            ("\n\nby = 'cgroups'".into(), "line 3: there is no means \"cgroups\""),
            (domain("selectors = ['pid:1']\nshare = 0"), "line 2: domain \"web\": \"0\" is no share"),
            (
                domain("selectors = ['pid:1']\nshares = 1"),
                "line 4: there is no key \"shares\"; did you mean share?",
            ),
            (domain("selectors = ['pid:1']\nlimit = 0"), "\"web\": \"0\" is no limit"),
            (domain("selectors = ['nothing']"), "selects nothing"),
            (domain("selectors = ['pid:1', 'share=9']"), "\"share=9\" selects nothing"),
            (domain("selectors = []"), "domain \"web\""),
            (domain("selectors = 3"), "texts in brackets"),
            (domain(""), "selectors"),
            ("[[domain]".into(), "line 1"),
        ] {
            let said = parse(&text).unwrap_err();
            assert!(said.contains("shares.toml") && said.contains(expected), "{text}: {said}");
        }
    }
}
