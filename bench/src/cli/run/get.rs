//! `onering-bench run --workload get`.

use super::{Arguments, tls};
use crate::cli::{CommandError, Verdict};
use crate::engine::{self, RunError, preflight};
use crate::request::Version;
use crate::result::load::{HttpVersion, Load, Pacing, RequestsPerConnection};
use crate::target::Targets;
use crate::workload::get::{Get, Plan as GetPlan};
use std::collections::BTreeMap;

impl Arguments {
    pub(super) fn get(&self, targets: Targets) -> Result<Verdict, CommandError> {
        let wording = self.wording();
        let tls = self.tls.tls(&targets, 0)?;
        let first = &targets.list[0];
        let settings = tls.as_ref().map(|tls| &tls.settings);
        let answer =
            preflight::ask(targets.address, settings, first, &wording, self.status, self.timeout)
                .map_err(RunError::from)?;
        let requests_per_connection =
            if self.close { Some(1) } else { self.requests_per_connection };
        let kept = requests_per_connection != Some(1);
        let load_tls =
            tls.as_ref().zip(answer.negotiated).map(|(tls, spoken)| tls::load(tls, spoken));
        let plan = self.plan(&targets, tls, answer.bytes, kept, self.drawn_from());
        let load = Load {
            workload: "get".to_owned(),
            parameters: BTreeMap::new(),
            target: first.to_string(),
            targets: targets.list.len() as u64,
            pipeline: self.pipeline,
            requests_per_connection: match requests_per_connection {
                None => RequestsPerConnection::Unlimited,
                Some(count) => RequestsPerConnection::Fixed { count },
            },
            http: match wording.version {
                Version::Http10 => HttpVersion::Http10,
                Version::Http11 => HttpVersion::Http11,
            },
            fields: wording.fields.iter().map(ToString::to_string).collect(),
            status: self.status,
            pacing: Pacing::None,
            tls: load_tls,
        };
        let get = GetPlan {
            targets: targets.list,
            wording,
            requests_per_connection,
            pipeline: plan.pipeline,
            status: self.status,
        };
        self.tell(&plan, load, |watch| {
            Ok(engine::run(
                &plan,
                &|share| Get::new(&get, share.part),
                &|_| "measured".to_owned(),
                watch,
            )?)
        })
    }
}
