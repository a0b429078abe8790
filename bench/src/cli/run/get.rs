//! `onering-bench run` of workloads that ask for targets: get and handshake.

use super::{Arguments, tls};
use crate::cli::{CommandError, Verdict};
use crate::engine::{self, Plan, RunError, preflight};
use crate::request::Version;
use crate::result::load::{HttpVersion, Load, Pacing, Parameter, RequestsPerConnection};
use crate::target::{Scheme, Targets};
use crate::workload::get::{Get, Plan as GetPlan};
use crate::workload::handshake::Handshakes;
use std::collections::BTreeMap;

/// What is to be done: the engine's part, what the result says of it, and the users' part.
struct Task {
    plan: Plan,
    load: Load,
    get: GetPlan,
}

impl Arguments {
    pub(super) fn get(&self, targets: Targets) -> Result<Verdict, CommandError> {
        let requests = if self.close { Some(1) } else { self.requests_per_connection };
        let Task { plan, load, get } = self.task("get", targets, requests)?;
        self.tell(&plan, load, |watch| {
            let users = |share: &engine::Share| Get::new(&get, share.part);
            Ok(engine::run(&plan, &users, &|_| "measured".to_owned(), watch)?)
        })
    }

    pub(super) fn handshake(&self, targets: Targets) -> Result<Verdict, CommandError> {
        if targets.list[0].scheme == Scheme::Http {
            return Err(CommandError::Usage("handshake needs a target that begins with https://"));
        }
        if self.pipeline != 1 || self.requests_per_connection.is_some_and(|count| count != 1) {
            return Err(CommandError::Usage("handshake has one request on each connection"));
        }
        let Task { mut plan, mut load, get } = self.task("handshake", targets, Some(1))?;
        plan.from_connect = true;
        let from = Parameter::Text("the beginning of the connection".to_owned());
        load.parameters.insert("service_time_from".to_owned(), from);
        self.tell(&plan, load, |watch| {
            let users =
                |share: &engine::Share| Handshakes::new(&get, share.part, share.connections);
            Ok(engine::run(&plan, &users, &|_| "measured".to_owned(), watch)?)
        })
    }

    /// Asks the server once, and plans.
    fn task(
        &self,
        workload: &str,
        targets: Targets,
        requests_per_connection: Option<u64>,
    ) -> Result<Task, CommandError> {
        let wording = self.wording();
        let tls = self.tls.tls(&targets, 0)?;
        let first = &targets.list[0];
        let settings = tls.as_ref().map(|tls| &tls.settings);
        let answer =
            preflight::ask(targets.address, settings, first, &wording, self.status, self.timeout)
                .map_err(RunError::from)?;
        let kept = requests_per_connection != Some(1);
        let load_tls =
            tls.as_ref().zip(answer.negotiated).map(|(tls, spoken)| tls::load(tls, spoken));
        let plan = self.plan(&targets, tls, answer.bytes, kept, self.drawn_from());
        let load = Load {
            workload: workload.to_owned(),
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
            body_bytes: Some(answer.body_bytes),
        };
        Ok(Task { plan, load, get })
    }
}
