// SPDX-License-Identifier: Apache-2.0
import {csvText} from '../model/safe_text';

import {append, element} from './dom';

export interface Column<Row> {
  title: string;
  // What the table is sorted by, and what goes into a CSV file.
  value: (row: Row) => string | number;
  // What is shown, if it is not the value.
  show?: (row: Row) => Node | string;
  numeric?: boolean;
  style?: string;
  sortable?: boolean;
}

// Rows are added to the document as the table is scrolled, so many at a time.
const kRowsStep = 40;

// A table that is sorted by a click on a column's head, of at most rowsMax rows.
export class DataTable<Row> {
  readonly element: HTMLElement;
  private readonly head = element('tr');
  private readonly body = element('tbody');
  private readonly rest = element('div', {class: 'table-rest', hidden: true});
  private rows: Row[] = [];
  private order: Row[] = [];

  constructor(
      private readonly columns: Column<Row>[], label: string, private sortBy = 0, private descending = false,
      private readonly onRow: ((row: Row) => void)|null = null, private readonly rowsMax = 500,
      private readonly owner: {sortChanged(): void}|null = null) {
    const table = element('table', {'aria-label': label}, element('thead', {}, this.head), this.body);
    this.element =
        element('div', {class: 'table-box', tabindex: '0', role: 'region', 'aria-label': label}, table, this.rest);
    this.element.addEventListener('scroll', () => this.addRows(false));
    this.buildHead();
  }

  show(rows: Row[]): void {
    this.rows = rows;
    this.build();
  }

  // The column that the table is sorted by, and a minus if it begins with the largest: for the URL.
  get sort(): string {
    return (this.descending ? '-' : '') + this.columns[this.sortBy].title;
  }

  set sort(text: string) {
    const column = this.columns.findIndex(other => other.title === text.replace(/^-/, ''));
    if (column < 0) return;
    this.sortBy = column;
    this.descending = text[0] === '-';
    this.buildHead();
  }

  csv(): string {
    return csvText([
      this.columns.map(column => column.title),
      ...this.sorted().map(row => this.columns.map(column => column.value(row)))
    ]);
  }

  private buildHead(): void {
    this.head.textContent = '';
    this.columns.forEach((column, i) => {
      const cell = element('th', {scope: 'col', class: classOf(column)});
      if (column.sortable === false) {
        append(cell, column.title);
      } else {
        const order = this.sortBy === i ? (this.descending ? 'descending' : 'ascending') : 'none';
        cell.setAttribute('aria-sort', order);
        cell.appendChild(element(
            'button', {type: 'button', class: 'sort', onclick: () => this.sortByColumn(i)}, column.title,
            element(
                'span', {class: 'sort-mark', 'aria-hidden': 'true'},
                order === 'none'      ? ''
                    : this.descending ? '▾'
                                      : '▴')));
      }
      this.head.appendChild(cell);
    });
  }

  private sortByColumn(column: number): void {
    this.descending = this.sortBy === column ? !this.descending : this.columns[column].numeric === true;
    this.sortBy = column;
    this.buildHead();
    (this.head.children[column].querySelector('button') as HTMLElement | null)?.focus();
    this.build();
    this.owner?.sortChanged();
  }

  private sorted(): Row[] {
    const {value} = this.columns[this.sortBy] ?? this.columns[0], sign = this.descending ? -1 : 1;
    return [...this.rows].sort((a, b) => {
      const left = value(a), right = value(b);
      if (typeof left === 'number' && typeof right === 'number') return sign * (left - right);
      return sign * String(left).localeCompare(String(right), 'en', {numeric: true});
    });
  }

  // Whoever uses the keyboard keeps the place in the table when its rows are made again.
  private build(): void {
    const {activeElement} = document;
    const place = activeElement && this.body.contains(activeElement) ? placeOf(activeElement) : '';
    this.body.textContent = '';
    this.order = this.sorted();
    this.addRows(true);
    if (place)
      [...this.body.querySelectorAll<HTMLElement>('a, button, [tabindex]')]
          .find(other => placeOf(other) === place)
          ?.focus({preventScroll: true});
    this.rest.hidden = this.rows.length <= this.rowsMax;
    this.rest.textContent = `${this.rows.length - this.rowsMax} more rows are not shown; sort or filter to see them.`;
  }

  // Adds rows if there are fewer than the person has scrolled to.
  private addRows(isFirst: boolean): void {
    const {scrollTop, clientHeight, scrollHeight} = this.element, most = Math.min(this.order.length, this.rowsMax);
    if (!isFirst && scrollTop + clientHeight * 2 < scrollHeight) return;
    const have = this.body.childElementCount;
    for (const row of this.order.slice(have, Math.min(most, have + kRowsStep)))
      this.body.appendChild(this.buildRow(row));
  }

  private buildRow(row: Row): HTMLElement {
    const made = element('tr');
    const {onRow} = this;
    if (onRow) {
      made.className = 'clickable';
      made.tabIndex = 0;
      made.addEventListener('click', () => onRow(row));
      made.addEventListener('keydown', event => {
        if (event.key === 'Enter' && event.target === made) onRow(row);
      });
    }
    for (const column of this.columns) {
      const cell = element('td', {class: classOf(column)});
      append(cell, column.show ? column.show(row) : column.value(row));
      made.appendChild(cell);
    }
    return made;
  }
}

// Names an element by the first link of its row, or else the row's number, and by its place in the row.
function placeOf(inner: Element): string {
  const row = inner.closest('tr'), cell = inner.closest('td');
  const key = row?.querySelector('a')?.getAttribute('href') ?? row?.rowIndex;
  return [key, cell?.cellIndex, cell ? [...cell.querySelectorAll('*')].indexOf(inner) : ''].join('|');
}

function classOf<Row>(column: Column<Row>): string|undefined {
  return [column.numeric ? 'number' : '', column.style ?? ''].join(' ').trim() || undefined;
}
