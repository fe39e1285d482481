//! Tables: split into pages, and sorted and filtered through links, so that ten thousand rows do
//! not make a long page.

use maud::{Markup, html};

use crate::section::{anchor, headed};
use crate::{Query, Value, units};

/// A table.
pub struct Table {
    /// Heading.
    pub heading: String,
    /// A line below the heading.
    pub note: Option<String>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, with a value for each column.
    pub rows: Vec<Row>,
    /// The text shown if there are no rows.
    pub empty_text: String,
    /// A form for filtering the rows.
    pub filter: Option<Filter>,
    /// The pager, if these are not all rows.
    pub pager: Option<Pager>,
}

/// A column.
#[derive(Clone)]
pub struct Column {
    /// The header.
    pub header: String,
    /// A tooltip that explains the header.
    pub title: Option<String>,
    /// Whether the values are numbers, which are aligned right.
    pub is_number: bool,
    /// The address that sorts by this column, and whether it is the current sort order.
    pub sort: Option<(String, bool)>,
}

/// A row.
pub enum Row {
    /// One value per column.
    Values(Vec<Value>),
    /// A heading for the rows below it.
    Group(Value, String),
}

/// A form with a text field that filters the rows of the same page.
pub struct Filter {
    /// The target of the form.
    pub path: String,
    /// The other parameters of the page.
    pub query: Query,
    /// The name of the parameter.
    pub name: String,
    /// The label of the text field.
    pub label: String,
    /// Suggestions for the text.
    pub offered: Vec<String>,
}

/// The pager: links to the pages of a long table.
pub struct Pager {
    path: String,
    query: Query,
    name: String,
    page: usize,
    pages: usize,
    // First and last row shown, counted from 1, and the number of all rows.
    shown: (usize, usize, usize),
}

impl Column {
    /// A column of text.
    pub fn text(header: &str) -> Column {
        Column { header: header.to_owned(), title: None, is_number: false, sort: None }
    }

    /// A column of numbers.
    pub fn number(header: &str) -> Column {
        Column { is_number: true, ..Column::text(header) }
    }

    /// Adds a tooltip.
    pub fn titled(self, title: &str) -> Column {
        Column { title: Some(title.to_owned()), ..self }
    }

    /// Adds a link that sorts by this column.
    pub fn sorted(self, address: String, is_current: bool) -> Column {
        Column { sort: Some((address, is_current)), ..self }
    }

    fn render(&self) -> Markup {
        let class = self.is_number.then_some("n");
        html! {
            @match &self.sort {
                Some((address, is_current)) => {
                    th scope="col" class=[class] title=[&self.title] aria-sort=[is_current.then_some("other")] {
                        a href=(address) { (self.header) @if *is_current { " ▾" } }
                    }
                }
                None => th scope="col" class=[class] title=[&self.title] { (self.header) },
            }
        }
    }
}

impl Pager {
    /// Splits `count` rows into pages of `size`, and returns the rows of the page that parameter
    /// `name` selects. A page after the last one becomes the last one, because rows may have been
    /// removed since the link was created.
    ///
    /// # Errors
    /// If the parameter is not a number.
    pub fn paginate(
        path: &str,
        query: &Query,
        name: &str,
        (count, size): (usize, usize),
    ) -> Result<(Pager, std::ops::Range<usize>), crate::Refusal> {
        let pages = count.div_ceil(size).max(1);
        let page = query.number(name)?.unwrap_or(1).min(pages);
        let rows = (page - 1) * size..(page * size).min(count);
        let shown = (rows.start + 1, rows.end, count);
        let pager =
            Pager { path: path.to_owned(), query: query.clone(), name: name.to_owned(), page, pages, shown };
        Ok((pager, rows))
    }

    fn render(&self, heading: &str) -> Markup {
        let (first, last, all) = self.shown;
        html! {
            @if self.pages > 1 {
                nav class="pager" aria-label={ "Pages of " (heading) } {
                    (self.link("« First", 1, heading)) (self.link("‹ Previous", self.page - 1, heading))
                    span { (units::exact(first as u64)) "–" (units::exact(last as u64)) " of " (units::exact(all as u64)) }
                    (self.link("Next ›", self.page + 1, heading)) (self.link("Last »", self.pages, heading))
                }
            }
        }
    }

    fn link(&self, text: &str, page: usize, heading: &str) -> Markup {
        let is_enabled = page != self.page && (1..=self.pages).contains(&page);
        let address = self.query.with(&self.name, Some(&page.to_string())).append_to(&self.path);
        html! {
            @if is_enabled { a href={ (address) "#" (anchor(heading)) } { (text) } } @else { span class="off" { (text) } }
        }
    }
}

impl Filter {
    fn render(&self, heading: &str) -> Markup {
        let current = self.query.get(&self.name).unwrap_or("");
        let list = format!("offered-{}", anchor(heading));
        let without = self.query.with(&self.name, None).append_to(&self.path);
        html! {
            form class="filter" method="get" action={ (self.path) "#" (anchor(heading)) } {
                @for (name, value) in self.query.pairs().filter(|(name, _)| *name != self.name) {
                    input type="hidden" name=(name) value=(value);
                }
                label {
                    (self.label) " "
                    input type="search" name=(self.name) value=(current) list=(list) placeholder="all" spellcheck="false";
                }
                datalist id=(list) { @for word in &self.offered { option value=(word) {} } }
                button { "Show" }
                @if !current.is_empty() { a href={ (without) "#" (anchor(heading)) } { "Show all" } }
            }
        }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(heading: &str, columns: Vec<Column>) -> Table {
        Table {
            heading: heading.to_owned(),
            note: None,
            columns,
            rows: Vec::new(),
            empty_text: "None.".to_owned(),
            filter: None,
            pager: None,
        }
    }

    /// Replaces the rows.
    pub fn with_rows(self, rows: impl IntoIterator<Item = Vec<Value>>) -> Table {
        Table { rows: rows.into_iter().map(Row::Values).collect(), ..self }
    }

    pub(super) fn render(&self) -> Markup {
        let content = html! {
            @if let Some(filter) = &self.filter { (filter.render(&self.heading)) }
            @if self.rows.is_empty() { p class="card none" { (self.empty_text) } } @else {
                div class="card scroll" tabindex="0" role="region" aria-label=(self.heading) {
                    table {
                        thead { tr { @for column in &self.columns { (column.render()) } } }
                        tbody { @for row in &self.rows { (self.row(row)) } }
                    }
                }
                @if let Some(pager) = &self.pager { (pager.render(&self.heading)) }
            }
        };
        headed(&self.heading, self.note.as_deref(), &content)
    }

    fn row(&self, row: &Row) -> Markup {
        html! {
            @match row {
                Row::Values(values) => tr { @for value in values { (cell(value)) } },
                Row::Group(name, note) => tr class="group" {
                    th colspan=(self.columns.len()) { span class="stay" { (name.render()) " " small { (note) } } }
                },
            }
        }
    }
}

fn cell(value: &Value) -> Markup {
    html! { td class=[value.is_number().then_some("n")] { (value.render()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_markup_are_escaped() {
        let column = Column::text("<b>Name</b>").titled("\"><script>");
        let mut table = Table::new("Regions", vec![column])
            .with_rows([vec![Value::text("<script>alert(1)</script>").linked("/x?\"><script>")]]);
        table.rows.push(Row::Group(Value::text("<script>"), "</th><script>".into()));
        let query = Query::default().with("table", Some("\"><script>")).with("<script>", Some("<script>"));
        table.filter = Some(Filter {
            path: "/rs-status".into(),
            query,
            name: "table".into(),
            label: "Table".into(),
            offered: vec!["\"><script>".into()],
        });
        let text = table.render().into_string();
        assert!(!text.contains("<script>") && !text.contains("<b>"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    }

    #[test]
    fn many_rows_are_split_into_pages() {
        let paginate =
            |text: &str| Pager::paginate("/rs-status", &Query::parse(text).unwrap(), "page", (250, 100));
        let (pager, rows) = paginate("sort=reads&page=2").unwrap();
        assert_eq!(rows, 100..200);
        let text = pager.render("Regions").into_string();
        assert!(text.contains("101–200 of 250"), "{text}");
        assert!(text.contains("href=\"/rs-status?page=3&amp;sort=reads#regions\""), "{text}");
        assert_eq!(paginate("page=9").unwrap().1, 200..250, "the last page");
        assert!(paginate("page=x").is_err());
        let (pager, rows) = Pager::paginate("/x", &Query::default(), "page", (0, 100)).unwrap();
        assert_eq!((rows, pager.render("Regions").into_string().as_str()), (0..0, ""));
    }

    #[test]
    fn a_table_without_rows_states_that() {
        let text = Table::new("Procedures", vec![Column::text("Name")]).render().into_string();
        assert!(text.contains("None.") && !text.contains("<table"), "{text}");
    }
}
