//! `auto|sched_ext|cgroup|dispatcher[:POLICY] NAME=SELECTOR,share=NUMBER…` deals out shares, prints by what, and
//! waits. For each line on its input it prints what acts, whether it rules, and for each group what was
//! wanted and given, in percent; a line `NAME=SHARE` sets a share first, and `policy NAME` a policy; `policy` prints the one that rules. For a line `failed` it
//! prints how often sched_ext was started again and what has failed last. At the end of its input it prints what was
//! put back.
//!
//! `hog` computes until it is ended.

#[path = "../../mete-ext/test-programs/instructions.rs"]
mod instructions;

use std::io::{self, BufRead, Write};

use mete_shares::{By, Dealer, Given, SharePolicy, SharedDomain};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    mete_sched::actuator::watcher::take_over_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["hog"] {
        loop {
            instructions::compute();
        }
    }
    let Some((by, groups)) = arguments.split_first() else { return Err("no arguments".into()) };
    let (by, policy) = by.split_once(':').map_or((by.as_str(), "vtrr"), |(by, policy)| (by, policy));
    let by = By::named(by).ok_or("no such means")?;
    let policy = SharePolicy::named(policy).ok_or("no such policy")?;
    let groups =
        groups.iter().map(|text| SharedDomain::parse(text.as_ref())).collect::<Result<Vec<_>, _>>()?;
    match Dealer::start(by, policy, groups) {
        Ok(dealer) => deal(dealer),
        Err(error) => say(&format!("refused: {error}")),
    }
}

fn deal(mut dealer: Dealer) -> Outcome {
    say(&dealer.to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        dealer.look()?;
        dealer.news().iter().for_each(|news| eprintln!("{news}"));
        if line == "failed" {
            let did = dealer.did();
            say(&format!("{} {}", did.restarts.unwrap_or(0), did.failed.unwrap_or_default()))?;
            continue;
        }
        if line == "policy" {
            say(dealer.did().policy.unwrap_or("kernel"))?;
            continue;
        }
        if let Some(name) = line.strip_prefix("policy ") {
            let set = dealer.set_policy(name);
            say(&set.map_or_else(
                |error| format!("refused: {error}"),
                |()| dealer.did().policy.unwrap_or("kernel").into(),
            ))?;
            continue;
        }
        if let Some((name, share)) = line.split_once('=') {
            dealer.set_share(name, share)?;
        }
        let did = dealer.did();
        let given: Vec<_> = dealer.given().iter().map(percents).collect();
        say(&format!("{} {} {}", did.by, did.ended.as_deref().unwrap_or("rules"), given.join(" ")))?;
    }
    say(&format!("{:?}", dealer.finish()))
}

fn percents(given: &Given) -> String {
    let got = given.given_percent.map_or("-".into(), |percent| format!("{percent:.2}"));
    format!("{:.2}:{got}", given.wanted_percent)
}

fn say(text: &str) -> Outcome {
    println!("{text}");
    Ok(io::stdout().flush()?)
}
