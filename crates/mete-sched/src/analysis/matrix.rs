//! Dense tables of counts: of the period that is running, of the last period, and in total.

/// A table of rows and columns.
#[derive(Clone, Debug)]
pub struct Matrix {
    columns: usize,
    cells: Vec<u64>,
}

impl Matrix {
    pub(super) fn new(rows: usize, columns: usize) -> Matrix {
        Matrix { columns, cells: vec![0; rows * columns] }
    }

    /// One cell; 0 outside the table.
    pub fn get(&self, row: usize, column: usize) -> u64 {
        self.row(row).get(column).copied().unwrap_or(0)
    }

    /// One row; empty outside the table.
    pub fn row(&self, row: usize) -> &[u64] {
        let begin = row.saturating_mul(self.columns);
        self.cells.get(begin..begin.saturating_add(self.columns)).unwrap_or(&[])
    }

    /// All cells, row after row.
    pub fn cells(&self) -> &[u64] {
        &self.cells
    }

    pub(super) fn column(&self, column: usize) -> impl Iterator<Item = u64> {
        // `max(1)`: a table without columns has no cells, but `step_by(0)` would panic.
        self.cells.iter().skip(column).step_by(self.columns.max(1)).copied()
    }

    /// A cell to be changed; `None` outside the table. A column that is too large would be a cell of the next
    /// row.
    fn cell(&mut self, row: usize, column: usize) -> Option<&mut u64> {
        self.cells.get_mut(row * self.columns + column).filter(|_| column < self.columns)
    }

    pub(super) fn add(&mut self, row: usize, column: usize, count: u64) {
        if let Some(cell) = self.cell(row, column) {
            *cell = cell.saturating_add(count);
        }
    }

    pub(super) fn subtract(&mut self, row: usize, column: usize, count: u64) {
        if let Some(cell) = self.cell(row, column) {
            *cell = cell.saturating_sub(count);
        }
    }

    pub(super) fn set(&mut self, row: usize, column: usize, count: u64) {
        if let Some(cell) = self.cell(row, column) {
            *cell = count;
        }
    }
}

/// Counts that only grow, by period.
#[derive(Clone, Debug)]
pub struct Counts {
    running: Matrix,
    period: Matrix,
    total: Matrix,
    recent: Matrix,
}

impl Counts {
    pub(super) fn new(rows: usize, columns: usize) -> Counts {
        let empty = Matrix::new(rows, columns);
        Counts { running: empty.clone(), period: empty.clone(), total: empty.clone(), recent: empty }
    }

    /// The counts since the beginning, as of the last poll.
    pub fn total(&self) -> &Matrix {
        &self.total
    }

    /// The counts of the last whole period.
    pub fn period(&self) -> &Matrix {
        &self.period
    }

    /// A history, in which each period weighs half as much as the period after it.
    pub fn recent(&self) -> &Matrix {
        &self.recent
    }

    pub(super) fn add(&mut self, row: usize, column: usize, count: u64) {
        self.running.add(row, column, count);
        self.total.add(row, column, count);
    }

    /// Takes back what was charged too much. What was added in an earlier period is taken back from the total
    /// only.
    pub(super) fn take_back(&mut self, row: usize, column: usize, count: u64) {
        self.running.subtract(row, column, count);
        self.total.subtract(row, column, count);
    }

    pub(super) fn end_period(&mut self) {
        // Swapped and cleared, so that the end of a period allocates nothing.
        std::mem::swap(&mut self.running, &mut self.period);
        self.running.cells.fill(0);
        for (recent, &period) in self.recent.cells.iter_mut().zip(&self.period.cells) {
            *recent = (*recent / 2).saturating_add(period);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_from_the_running_period_to_the_last_one_and_fade_by_halves() {
        let mut counts = Counts::new(2, 3);
        counts.add(1, 2, 100);
        assert_eq!((counts.period().get(1, 2), counts.total().get(1, 2)), (0, 100));
        counts.end_period();
        assert_eq!((counts.period().get(1, 2), counts.recent().get(1, 2)), (100, 100));
        counts.end_period();
        assert_eq!(
            (counts.period().get(1, 2), counts.recent().get(1, 2), counts.total().get(1, 2)),
            (0, 50, 100)
        );
    }

    #[test]
    fn what_is_taken_back_is_in_no_sum_and_a_period_never_has_less_than_nothing() {
        let mut counts = Counts::new(1, 1);
        counts.add(0, 0, 100);
        counts.end_period();
        counts.add(0, 0, 10);
        counts.take_back(0, 0, 30);
        assert_eq!(counts.total().get(0, 0), 80);
        counts.end_period();
        assert_eq!(counts.period().get(0, 0), 0);
    }

    #[test]
    fn what_lies_outside_of_the_table_reads_as_nothing() {
        let matrix = Matrix::new(2, 2);
        assert_eq!((matrix.get(2, 0), matrix.get(0, 2), matrix.get(usize::MAX, 0)), (0, 0, 0));
    }
}
