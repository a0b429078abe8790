//! What is done with a request, by its method (RFC 9110 §9).

use crate::http::{Method, Persistence, RequestHead, Status};

use super::{Channel, Files, Now, Reply, Request};

impl Files {
    /// What to send for a request: a file for GET and HEAD, a status for any other method.
    ///
    /// Every target that there may be allows the same methods, `*` too (§9.3.7), so that no file is
    /// looked for where none will be sent.
    #[inline]
    pub fn answer(
        &mut self,
        head: &RequestHead<'_>,
        persistence: Persistence,
        channel: Channel,
        now: &Now,
    ) -> Reply {
        let site = self.site(head.host, channel);
        let head_only = head.method == Method::Head;
        if self.sends_on
            && let Some(reply) = self.send_on(site, head, persistence, now)
        {
            return reply;
        }
        if !self.is_reached(site, channel) {
            return self.status(site, Status::MISDIRECTED_REQUEST, persistence, head_only, now);
        }
        let status = match head.method {
            Method::Get | Method::Head => {
                let RequestHead { target, fields, .. } = *head;
                let request = Request { target, head_only, persistence, fields };
                return self.reply(site, &request, now);
            }
            Method::Options => Status::NO_CONTENT,
            Method::Other => Status::NOT_IMPLEMENTED,
            _ => Status::METHOD_NOT_ALLOWED,
        };
        self.status(site, status, persistence, false, now)
    }
}
