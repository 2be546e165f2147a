//! The page, embedded into the program.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

/// A file of the page.
pub struct PageFile {
    name: &'static str,
    bytes: &'static [u8],
}

macro_rules! page_files {
    ($($name:literal)+) => {
        &[$(PageFile {
            name: $name,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/serve/page/", $name)),
        }),+]
    };
}

/// All files of the page. The first is also that of the path `/`.
const FILES: &[PageFile] = page_files!(
    "index.html" "analysis.js" "api.js" "board.css" "board.js" "board_cards.js" "board_graph.js"
    "board_grid.js" "board_slots.js" "chart.js" "dom.js" "favicon.svg" "feed.js" "main.js" "messages.js"
    "moves.js" "overlay.js" "pieces.js" "player_list.js" "players.js" "records.js" "replay.js" "review.js"
    "route.js" "set_up.js" "settings.js" "spots.js" "start.js" "style.css" "table.js" "table_controls.js"
    "watch.js" "wording.js" "workers.js"
);

/// The file at `path`, which begins with a slash.
pub fn find(path: &str) -> Option<&'static PageFile> {
    match path {
        "/" => FILES.first(),
        _ => FILES.iter().find(|file| path.strip_prefix('/') == Some(file.name)),
    }
}

impl PageFile {
    /// The reply with this file, or without it if the client has it.
    pub fn reply(&self, request: &HeaderMap) -> Response {
        let tag = format!("\"{:08x}\"", crc32fast::hash(self.bytes));
        let is_known = request.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let mut response = match is_known {
            true => Response::new(Body::empty()),
            false => Response::new(Body::from(self.bytes)),
        };
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type()));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        HeaderValue::try_from(tag).into_iter().for_each(|tag| drop(headers.insert(ETAG, tag)));
        response
    }

    fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Bytes of the whole page.
    const BUDGET: usize = 300_000;

    #[test]
    fn every_file_of_the_folder_is_served_and_all_are_small() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/page");
        let entries = std::fs::read_dir(folder).expect("the page's folder");
        let mut found: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        let mut served: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        found.sort();
        served.sort_unstable();
        assert_eq!(served, found);
        let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes < BUDGET, "{bytes}");
    }

    #[test]
    fn scripts_and_styles_stand_in_files_of_their_own() {
        for file in FILES {
            let text = String::from_utf8_lossy(file.bytes);
            assert!(!file.media_type().starts_with("application"), "{}", file.name);
            if file.name.ends_with(".html") {
                // The policy of the server forbids them, so they would do nothing.
                assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains(" onclick="));
            }
            for other in ["http://", "https://"] {
                let foreign = text.match_indices(other).map(|(at, _)| &text[at..]);
                let mut foreign = foreign.filter(|link| !link.starts_with("http://www.w3.org/"));
                assert_eq!(foreign.next(), None, "{} names another site", file.name);
            }
        }
    }
}
