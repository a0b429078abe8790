//! Results: what a run writes is read, shown and merged; the page is drawn by a browser, and asks
//! nobody for anything.

use crate::browser::Browser;
use crate::floor::{Floor, PROGRAM};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A result that comes with the tests.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bench<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}

fn skip(name: &str, why: &str) {
    writeln!(std::io::stderr(), "\nskipped: {name}: {why}").expect("standard error can be written");
}

#[test]
fn what_a_run_writes_is_read_again() {
    let floor = match Floor::attempt() {
        Ok(floor) => floor,
        Err(why) => return skip("what_a_run_writes_is_read_again", &why),
    };
    let directory = TempDir::new().unwrap();
    let pid = floor.pid().to_string();
    // The last is more than any connection carries, so that answers come when the window is over.
    for (name, model) in
        [("closed", "--connections=4"), ("open", "--rate=500"), ("open", "--rate=1000000")]
    {
        let file = directory.path().join(name);
        let target = ["run", "--target", &floor.url, "--server-pid", &pid, model];
        let times = ["--duration=1200ms", "--warmup=100ms", "--timeout=2s", "--cpus=0", "--json"];
        let run = bench(target.into_iter().chain(times).map(Path::new).chain([&*file]));
        // Whether the generator kept up is this machine's business.
        assert!(matches!(run.status.code(), Some(0 | 1 | 5)), "{}", text(&run.stderr));
        let report = bench([Path::new("report"), &file]);
        assert!(report.status.success(), "{}", text(&report.stderr));
        let shown = text(&report.stdout);
        assert!(shown.contains(&floor.url) && shown.contains("service time"), "{shown}");
        assert_eq!(shown.contains("\n  response time"), name == "open", "{shown}");
        let json = bench(["report".as_ref(), file.as_os_str(), "--json".as_ref(), "-".as_ref()]);
        assert_eq!(text(&json.stdout), std::fs::read_to_string(&file).unwrap());
    }
}

#[test]
fn refusals_name_the_file_and_exit_with_2() {
    let directory = TempDir::new().unwrap();
    let whole = std::fs::read(data("open.json")).unwrap();
    for (name, contents, reason) in [
        ("truncated", &whole[..whole.len() / 2], "ends before the result does"),
        (
            "older",
            b"{\"schema\": \"onering-bench/run/1\"}",
            "this version reads \"onering-bench/run/2\"",
        ),
        ("foreign", b"<html></html> and more", "not a result"),
    ] {
        let file = directory.path().join(name);
        std::fs::write(&file, contents).unwrap();
        let refused = bench([Path::new("report"), &file]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(name) && said.contains(reason) && said.contains("fix: "), "{said}");
    }
    let unlike = bench([
        "merge".as_ref(),
        data("open.json").as_os_str(),
        data("web99.json").as_os_str(),
        "--json".as_ref(),
        "-".as_ref(),
    ]);
    let said = text(&unlike.stderr);
    assert_eq!(unlike.status.code(), Some(2), "{said}");
    assert!(said.contains("web99.json") && said.contains("the workload"), "{said}");
    assert!(unlike.stdout.is_empty());
}

/// What is measured of each chart that is shown: its box, and pairs of its labels that touch.
const CHARTS: &str = r"
JSON.stringify([...document.querySelectorAll('svg')]
  .filter(svg => svg.getBoundingClientRect().width > 0)
  .map(svg => {
    const boxes = [...svg.querySelectorAll('text')].map(text => [text, text.getBoundingClientRect()]);
    const touch = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
      && a.top < b.bottom - 3 && b.top < a.bottom - 3;
    const touching = [];
    boxes.forEach(([a, box], i) => boxes.slice(i + 1).forEach(([b, other]) => {
      if (touch(box, other)) touching.push(a.textContent + ' / ' + b.textContent);
    }));
    const box = svg.getBoundingClientRect();
    const lines = [...svg.querySelectorAll('path.line, rect.bar')].map(line => line.getBBox());
    return {
      id: svg.querySelector('title').id, width: box.width, height: box.height, touching,
      outside: boxes.filter(([, b]) => b.right > innerWidth || b.left < 0).map(([a]) => a.textContent),
      drawn: lines.filter(line => line.width + line.height > 0).length,
    };
  }))";

#[test]
fn the_page_is_drawn_in_every_light_and_width_and_asks_for_nothing() {
    if !Browser::is_here() {
        return skip(
            "the_page_is_drawn_in_every_light_and_width_and_asks_for_nothing",
            "no chromium",
        );
    }
    let directory = TempDir::new().unwrap();
    let mut browser = Browser::start();
    for (name, charts) in [("open.json", 3), ("web99.json", 3), ("web96.json", 4)] {
        let page = directory.path().join(name).with_extension("html");
        let made =
            bench(["report".as_ref(), data(name).as_os_str(), "--html".as_ref(), page.as_os_str()]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        browser.open(&page);
        let mut papers = Vec::new();
        for (width, scheme) in [(1200, "light"), (1200, "dark"), (360, "light")] {
            browser.show(width, scheme);
            let measured = browser.evaluate(CHARTS);
            let shown: Vec<Value> = serde_json::from_str(measured.as_str().unwrap()).unwrap();
            assert_eq!(shown.len(), charts, "{name} at {width}: {shown:?}");
            for chart in shown {
                let at_least = |field: &str, least: f64| chart[field].as_f64().unwrap() >= least;
                let is_drawn = at_least("width", 300.0) && at_least("height", 150.0);
                assert!(is_drawn && at_least("drawn", 1.0), "{name} at {width}: {chart}");
                let is_clear = [&chart["touching"], &chart["outside"]]
                    .map(|list| list.as_array().unwrap().is_empty());
                assert_eq!(is_clear, [true, true], "{name} at {width}: {chart}");
            }
            let wide = browser.evaluate("document.documentElement.scrollWidth <= innerWidth");
            assert_eq!(wide, true, "{name} at {width} is wider than its window");
            papers.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
        }
        assert_ne!(papers[0], papers[1], "light and dark are the same");
        for complaint in ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"] {
            assert!(browser.seen(complaint).is_empty(), "{name}: {:?}", browser.seen(complaint));
        }
        let asked = browser.seen("Network.requestWillBeSent");
        let urls: Vec<_> =
            asked.iter().map(|event| event["params"]["request"]["url"].as_str()).collect();
        let own = format!("file://{}", page.display());
        assert_eq!(urls, [Some(own.as_str())], "only the page itself is asked for");
    }
}

/// The test before this one would see a request if there were one.
#[test]
fn a_page_that_asks_for_something_is_noticed() {
    if !Browser::is_here() {
        return skip("a_page_that_asks_for_something_is_noticed", "no chromium");
    }
    let directory = TempDir::new().unwrap();
    let page = directory.path().join("page.html");
    std::fs::write(&page, "<script>console.log(1)</script><img src='http://host.invalid/x.png'>")
        .unwrap();
    let mut browser = Browser::start();
    browser.open(&page);
    assert_eq!(browser.seen("Network.requestWillBeSent").len(), 2);
    assert_eq!(browser.seen("Runtime.consoleAPICalled").len(), 1);
}
