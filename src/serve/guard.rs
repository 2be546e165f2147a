//! Who is answered: the page of this server, and programs of this machine. Pages of other sites are not, even if their names lead to
//! this address (DNS rebinding).

use super::refusal::{Refusal, Served};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What the page may do: nothing but with files and data of this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The rules of who is answered.
pub struct Guard {
    /// The valid values of the header `Host`; None where the token alone decides: a machine and a proxy before it have many names, and a page of
    /// another site that leads to this address has no token.
    hosts: Option<Vec<String>>,
    /// What every request must have.
    token: Option<String>,
    /// The cookie with the token. Its name has the port, since a browser sends a cookie to all ports of a machine.
    cookie: String,
}

impl Guard {
    /// The rules of a server at `address`.
    pub fn new(address: SocketAddr, token: Option<String>) -> Self {
        let port = address.port();
        let names = ["localhost".to_string(), "127.0.0.1".to_string(), "[::1]".to_string()];
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        hosts.push(address.to_string());
        if port == 80 {
            // Browsers leave out the port of the protocol.
            hosts.extend(names);
            hosts.push(match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            });
        }
        let cookie = format!("vecaz_token_{port}");
        Self { hosts: token.is_none().then_some(hosts), token, cookie }
    }

    /// Refuses what is not answered. The token comes back if the query had it, to be kept as a cookie.
    fn check(&self, request: &Request) -> Served<Option<&str>> {
        let headers = request.headers();
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
            (Some(host), None) => host.to_ascii_lowercase(),
            _ => return Err(Refusal::bad("the request needs one header Host")),
        };
        if self.hosts.as_ref().is_some_and(|known| !known.contains(&host)) {
            let what = format!("Host: got {host:?}, expected this server's own address");
            return Err(Refusal::forbidden(what));
        }
        let is_api = request.uri().path().starts_with("/api");
        // A browser speaks TLS to a proxy that passes its requests on.
        let own = [format!("http://{host}"), format!("https://{host}")];
        for origin in headers.get_all(ORIGIN) {
            if !own.iter().any(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes())) {
                return Err(Refusal::forbidden("requests of other sites are not obeyed"));
            }
        }
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if is_api && site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Err(Refusal::forbidden("requests of other sites are not obeyed"));
        }
        self.check_token(request.uri().query().unwrap_or(""), headers)
    }

    fn check_token(&self, query: &str, headers: &HeaderMap) -> Served<Option<&str>> {
        let Some(token) = self.token.as_deref() else { return Ok(None) };
        if form_urlencoded::parse(query.as_bytes())
            .any(|(key, value)| key == "token" && is_equal(&value, token))
        {
            return Ok(Some(token));
        }
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies =
            cookies.flat_map(|text| text.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        let bearer =
            headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let known = cookies.any(|(name, value)| name == self.cookie && is_equal(value, token))
            || bearer.is_some_and(|value| is_equal(value, token));
        match known {
            true => Ok(None),
            false => Err(Refusal::new(
                StatusCode::UNAUTHORIZED,
                "this server needs its token: open the address that it printed, or send the token as Bearer",
            )),
        }
    }
}

/// Compares in a time that does not depend on where texts differ.
fn is_equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Answers what the guard lets through, and adds the headers of all replies.
pub async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let checked = guard.check(&request);
    let mut response = match checked {
        Ok(_) => next.run(request).await,
        Err(refusal) => return with_headers(refusal.into_response()),
    };
    if let Ok(Some(token)) = checked {
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", guard.cookie);
        let cookie = HeaderValue::try_from(cookie);
        cookie.into_iter().for_each(|cookie| drop(response.headers_mut().insert(SET_COOKIE, cookie)));
    }
    with_headers(response)
}

fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let resources = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resources, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    /// The status of a request for the tables; 200 if it is let through.
    fn status(guard: &Guard, headers: &[(HeaderName, &str)]) -> u16 {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "/api/tables".parse().expect("a path");
        for (name, value) in headers {
            request.headers_mut().append(name, HeaderValue::from_str(value).expect("a value"));
        }
        guard.check(&request).map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    fn guard(address: &str, token: Option<&str>) -> Guard {
        Guard::new(address.parse().expect("an address"), token.map(str::to_string))
    }

    #[test]
    fn without_a_token_the_host_is_an_own_address() {
        let guard = guard("127.0.0.1:8000", None);
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"] {
            assert_eq!(status(&guard, &[(HOST, host)]), 200, "{host}");
        }
        for host in ["play.example", "127.0.0.1:8001", "localhost"] {
            assert_eq!(status(&guard, &[(HOST, host)]), 403, "{host}");
        }
    }

    #[test]
    fn at_the_port_of_the_protocol_the_host_has_no_port() {
        for (address, host) in [
            ("127.0.0.2:80", "127.0.0.2"),
            ("127.0.0.2:80", "127.0.0.2:80"),
            ("127.0.0.2:80", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[fd00::2]:80", "[fd00::2]"),
        ] {
            assert_eq!(status(&guard(address, None), &[(HOST, host)]), 200, "{address} {host}");
        }
        assert_eq!(status(&guard("127.0.0.2:80", None), &[(HOST, "127.0.0.3")]), 403);
        assert_eq!(status(&guard("127.0.0.2:8000", None), &[(HOST, "127.0.0.2")]), 403);
    }

    /// A proxy on this machine passes on its own public name.
    #[test]
    fn with_a_token_every_host_is_answered() {
        for address in ["127.0.0.1:8000", "[::1]:8000", "0.0.0.0:8000"] {
            let guard = guard(address, Some("secret"));
            let host = (HOST, "play.example");
            assert_eq!(status(&guard, &[host.clone(), (AUTHORIZATION, "Bearer secret")]), 200, "{address}");
            assert_eq!(status(&guard, std::slice::from_ref(&host)), 401, "{address}");
            assert_eq!(status(&guard, &[host, (AUTHORIZATION, "Bearer secreT")]), 401, "{address}");
        }
    }

    /// A token does not let pages of other sites in: a browser may send its cookie with their requests.
    #[test]
    fn the_origin_is_the_host() {
        let guard = guard("127.0.0.1:8000", Some("secret"));
        let with = |origin: &str| {
            status(&guard, &[(HOST, "play.example"), (ORIGIN, origin), (COOKIE, "vecaz_token_8000=secret")])
        };
        for origin in ["https://play.example", "http://Play.example"] {
            assert_eq!(with(origin), 200, "{origin}");
        }
        for origin in ["https://evil.example", "null", "https://play.example:81", "http://127.0.0.1:8000"] {
            assert_eq!(with(origin), 403, "{origin}");
        }
    }
}
