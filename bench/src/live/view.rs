//! A run as it is drawn in a terminal: five rows, and an empty one on which the cursor rests.

use super::Second;
use super::course::Course;
use super::line::listed;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph, Sparkline, Widget};

/// Rows that are drawn in.
pub(super) const ROWS: u16 = 6;

/// Columns below which there is only text.
const WIDE: u16 = 48;

/// Columns of what stands before a gauge or a sparkline.
const TEXT: u16 = 30;

/// Draws the second that has just passed, and how the run has gone so far.
pub(super) fn draw(frame: &mut Frame<'_>, second: &Second, course: &Course, colors: bool) {
    let area = frame.area();
    let style = |color: Color| if colors { Style::new().fg(color) } else { Style::new() };
    let rows: [Rect; ROWS as usize] =
        Layout::vertical([Constraint::Length(1); ROWS as usize]).areas(area);
    let wide = area.width >= WIDE;
    // Text on the left; what is left of it is for the picture.
    let parts = |row: Rect| -> [Rect; 2] {
        let text = if wide { Constraint::Length(TEXT) } else { Constraint::Fill(1) };
        let picture = if wide { Constraint::Fill(1) } else { Constraint::Length(0) };
        Layout::horizontal([text, picture]).areas(row)
    };
    let [text, picture] = parts(rows[0]);
    let progress = match second.of_s {
        Some(of_s) => format!("{:.0} of {of_s:.0} s", second.elapsed_s),
        None => format!("{:.0} s", second.elapsed_s),
    };
    let phase = Span::styled(format!("{:<12}", second.phase), style(Color::Cyan));
    frame.render_widget(Line::from(vec![phase, progress.into()]), text);
    if wide && let Some(of_s) = second.of_s {
        // Of a phase of no length there is no share: `max` makes zero of what is no number.
        let share = (second.elapsed_s / of_s).clamp(0.0, 1.0).max(0.0);
        let gauge = LineGauge::default()
            .label("")
            .ratio(share)
            .filled_symbol("━")
            .unfilled_symbol("─")
            .filled_style(style(Color::Cyan));
        frame.render_widget(gauge, picture);
    }
    let [text, picture] = parts(rows[1]);
    frame.render_widget(Line::from(format!("{:<12}{}/s", "requests", second.requests)), text);
    if wide {
        let rates = course.rates(usize::from(picture.width));
        frame.render_widget(Sparkline::default().data(rates).style(style(Color::Green)), picture);
    }
    let waiting = second.waiting.map_or_else(|| "nothing answered".to_owned(), |w| w.to_string());
    frame.render_widget(Line::from(format!("{:<12}{waiting}", "latency")), rows[2]);
    let mut load = format!(
        "{:<12}{:.1} MB/s, {} in flight",
        "load",
        second.bytes as f64 / 1e6,
        second.in_flight
    );
    if let Some(us) = second.server_cpu_us_per_request {
        load += &format!(", server {us:.2} µs CPU/request");
    }
    frame.render_widget(Line::from(load), rows[3]);
    frame.render_widget(trouble(course, second, style), rows[4]);
    frame.set_cursor_position(Position::new(area.x, rows[5].y));
}

/// What has gone wrong since the beginning.
fn trouble<'t>(course: &Course, second: &Second, style: impl Fn(Color) -> Style) -> Line<'t> {
    let mut line = vec![Span::raw(format!("{:<12}", "errors"))];
    let kinds = listed(course.errors());
    line.push(if kinds.is_empty() {
        Span::raw("none")
    } else {
        Span::styled(kinds, style(Color::Red))
    });
    if course.seconds_behind() > 0 {
        let now = if second.behind { "behind schedule" } else { "was behind schedule" };
        let text = format!("; {now} ({} s)", course.seconds_behind());
        line.push(Span::styled(text, style(Color::Yellow)));
    }
    Line::from(line)
}

/// Text that remains.
pub(super) fn note(buffer: &mut Buffer, text: &str) {
    let area = buffer.area;
    Paragraph::new(text).render(area, buffer);
}

#[cfg(test)]
mod tests {
    use super::super::{Phase, Waiting};
    use super::*;
    use ratatui::backend::TestBackend;
    use ratatui::{Terminal, TerminalOptions, Viewport};

    fn second(elapsed_s: f64, requests: u64) -> Second {
        Second {
            elapsed_s,
            of_s: Some(4.0),
            phase: Phase::Measured,
            requests,
            errors: std::iter::empty::<(&str, u64)>().collect(),
            bytes: 1_500_000,
            in_flight: 64,
            waiting: Some(Waiting { p50_us: 340.0, p99_us: 1204.0, max_us: 20_000.0 }),
            behind: false,
            server_cpu_us_per_request: None,
        }
    }

    fn terminal(width: u16, height: u16) -> Terminal<TestBackend> {
        let viewport = Viewport::Inline(ROWS);
        let backend = TestBackend::new(width, height);
        Terminal::with_options(backend, TerminalOptions { viewport }).unwrap()
    }

    /// What stands on the screen, a string for each row, blanks at the ends excluded.
    fn rows(terminal: &Terminal<TestBackend>) -> Vec<String> {
        let buffer = terminal.backend().buffer();
        let row = |y| {
            let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..buffer.area.height).map(row).collect()
    }

    #[test]
    fn a_run_is_drawn_with_its_progress_and_its_rates() {
        let mut terminal = terminal(60, 6);
        let mut course = Course::default();
        for (elapsed_s, requests) in [(1.0, 400), (2.0, 800)] {
            let second = second(elapsed_s, requests);
            course.add(&second);
            terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        }
        let rows = rows(&terminal);
        let gauge = format!("{}{}", "━".repeat(14), "─".repeat(15));
        assert_eq!(rows[0], format!("measured    2 of 4 s           {gauge}"));
        assert_eq!(rows[1], "requests    800/s             ▄█");
        assert_eq!(rows[2], "latency     p50 340 µs, p99 1.20 ms, max 20.0 ms");
        assert_eq!(rows[3], "load        1.5 MB/s, 64 in flight");
        assert_eq!(rows[4], "errors      none");
        assert_eq!(rows[5], "");
        terminal.backend_mut().assert_cursor_position(Position::new(0, 5));
    }

    #[test]
    fn errors_remain_and_lateness_is_told() {
        let mut terminal = terminal(70, 6);
        let mut course = Course::default();
        let mut bad = second(1.0, 1);
        bad.errors = [("reset", 2)].into_iter().collect();
        bad.behind = true;
        course.add(&bad);
        terminal.draw(|frame| draw(frame, &bad, &course, false)).unwrap();
        assert_eq!(rows(&terminal)[4], "errors      reset 2; behind schedule (1 s)");
        let good = second(2.0, 1);
        course.add(&good);
        terminal.draw(|frame| draw(frame, &good, &course, false)).unwrap();
        assert_eq!(rows(&terminal)[4], "errors      reset 2; was behind schedule (1 s)");
    }

    #[test]
    fn without_colours_no_cell_has_one() {
        let mut course = Course::default();
        let mut second = second(1.0, 5);
        second.errors = [("reset", 2)].into_iter().collect();
        second.behind = true;
        course.add(&second);
        for colors in [false, true] {
            let mut terminal = terminal(80, 6);
            terminal.draw(|frame| draw(frame, &second, &course, colors)).unwrap();
            let cells = &terminal.backend().buffer().content;
            let colored =
                cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
            assert_eq!(colored, colors);
        }
    }

    #[test]
    fn a_narrow_or_low_terminal_shows_what_fits() {
        for (width, height) in [(20, 6), (1, 1), (47, 3), (200, 50)] {
            let mut terminal = terminal(width, height);
            let (mut course, second) = (Course::default(), second(9.0, 5));
            course.add(&second);
            terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        }
        let mut terminal = terminal(20, 6);
        let (mut course, second) = (Course::default(), second(1.0, 5));
        course.add(&second);
        terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        assert_eq!(rows(&terminal)[0], "measured    1 of 4 s");
        assert_eq!(rows(&terminal)[1], "requests    5/s");
    }

    #[test]
    fn a_terminal_that_changes_its_size_is_drawn_anew() {
        let mut terminal = terminal(60, 10);
        let (mut course, second) = (Course::default(), second(1.0, 5));
        course.add(&second);
        terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        terminal.backend_mut().resize(30, 8);
        terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        let rows = rows(&terminal);
        assert_eq!(rows.iter().filter(|row| row.starts_with("measured")).count(), 1, "{rows:#?}");
    }

    #[test]
    fn notes_stand_above_and_the_view_is_taken_away() {
        let mut terminal = terminal(40, 8);
        let (mut course, second) = (Course::default(), second(1.0, 5));
        course.add(&second);
        terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        terminal.insert_before(1, |buffer| note(buffer, "the server has reloaded")).unwrap();
        terminal.draw(|frame| draw(frame, &second, &course, true)).unwrap();
        let drawn = rows(&terminal);
        let at = |text: &str| drawn.iter().position(|row| row.starts_with(text)).unwrap();
        assert!(at("the server has reloaded") < at("measured"), "{drawn:#?}");
        terminal.clear().unwrap();
        let left: Vec<_> = rows(&terminal).into_iter().filter(|row| !row.is_empty()).collect();
        assert_eq!(left, ["the server has reloaded"]);
    }
}
