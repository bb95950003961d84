// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {SummaryRow} from '../api/api_types';
import {PickedLine, summarise} from '../model/pick_summary';
import {nameTerm} from '../model/query';
import {fileName} from '../model/safe_text';
import {formatCount, formatDuration} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {Column, DataTable} from '../widgets/data_table';
import {button, download, element, notice, replaceChildren} from '../widgets/dom';

import {streamsQuery} from './block_loader';
import {Panel} from './dock';
import {Box, Pick, TimelineHost} from './timeline_host';

// What lies in the selected box, or the spans that were picked one by one, added up by name or by rank.
export class SelectionPanel implements Panel {
  readonly name = 'selection';
  readonly title = 'Selection';
  readonly element = element('div', {class: 'panel'});
  private shown: Box|Pick[]|null|undefined = undefined;
  private by: 'name'|'rank' = 'name';
  private abort: AbortController|null = null;

  constructor(private readonly host: TimelineHost) {}

  update(): void {
    const {box, picks} = this.host.state, chosen = box ?? (picks.length ? picks : null);
    if (chosen === this.shown) return;
    this.shown = chosen;
    this.abort?.abort();
    if (!box && picks.length) return this.showPicks(picks);
    if (box) return void this.load(box);
    replaceChildren(
        this.element,
        notice(
            'empty', 'No stretch is selected',
            'Drag a box over the timeline with tool 1, or a time over all ranks with tool 4. ' +
                'The events in it are added up here. Ctrl and click adds single spans.'));
  }

  private showPicks(picks: Pick[]): void {
    const {state} = this.host, byName = this.by === 'name', table = this.makeTable();
    const text = (line: PickedLine): SummaryRow => ({
      name: line.name,
      count: String(line.count),
      total_ns: ns(line.total),
      self_ns: ns(line.self),
      p50_ns: ns(line.p50),
      p99_ns: ns(line.p99),
      min_ns: ns(line.min),
      max_ns: ns(line.max)
    });
    table.show(summarise(picks, pick => byName ? pick.name : state.streamLabel(pick.stream)).map(text));
    const head = element(
        'div', {class: 'panel-head'}, this.pickBy(() => this.showPicks(picks)),
        element('strong', {}, `${picks.length} picked ${picks.length === 1 ? 'span' : 'spans'}`),
        element('span', {class: 'faint'}, 'as drawn: a span that stands for several events counts once'),
        button('Clear', () => this.host.chooseBox(null)));
    replaceChildren(this.element, head, element('div', {class: 'panel-rest'}, table.element));
  }

  private pickBy(show: () => void): HTMLElement {
    const pick = (by: 'name'|'rank', label: string): HTMLElement => button(label, () => {
      this.by = by;
      show();
    }, {'aria-pressed': String(this.by === by)});
    return element('span', {class: 'segments'}, pick('name', 'By name'), pick('rank', 'By rank'));
  }

  private async load(box: Box): Promise<void> {
    const {state, api} = this.host, abort = this.abort = new AbortController();
    const head = this.head(box),
          body = element('div', {class: 'panel-rest'}, notice('loading', 'Adding up the events'));
    replaceChildren(this.element, head, body);
    try {
      const reply = await api.summary(
          state.captureId, {
            ...streamsQuery(box.streams, state.layout.streams.length),
            from: state.base.absolute(box.from),
            to: state.base.absolute(box.to),
            by: this.by
          },
          abort.signal);
      if (this.shown !== box) return;
      const table = this.makeTable();
      table.show(reply.rows);
      head.append(
          element(
              'span', {class: 'faint'},
              `${formatCount(parseCount(reply.events))} events` +
                  (reply.complete ? '' : ' (of a part: the stretch is too large)')),
          button(
              'CSV',
              () => download(
                  fileName(`${state.layout.name}_selection`, '.csv'), new Blob([table.csv()], {type: 'text/csv'}))));
      replaceChildren(body, reply.rows.length ? table.element : notice('empty', 'No event lies in the selection'));
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      replaceChildren(
          body,
          notice(
              'error', `The selection cannot be added up: ${message}`, hint,
              button('Try again', () => void this.load(box))));
    }
  }

  private head(box: Box): HTMLElement {
    const ranks = box.streams.length;
    return element(
        'div', {class: 'panel-head'}, this.pickBy(() => void this.load(box)),
        element('strong', {}, formatDuration(box.to - box.from)),
        element('span', {class: 'faint'}, `all rows of ${ranks} ${ranks === 1 ? 'rank or host' : 'ranks and hosts'}`),
        button('Zoom to it', () => {
          this.host.state.viewport.show(box.from, box.to);
          this.host.viewChanged();
        }));
  }

  private makeTable(): DataTable<SummaryRow> {
    const length = (title: string, key: keyof SummaryRow): Column<SummaryRow> =>
        ({title, numeric: true, value: row => parseCount(row[key]), show: row => formatDuration(parseCount(row[key]))});
    const columns: Column<SummaryRow>[] = [
      {title: this.by === 'name' ? 'Name' : 'Rank', value: row => row.name, style: 'wide'},
      {
        title: 'Count',
        numeric: true,
        value: row => parseCount(row.count),
        show: row => formatCount(parseCount(row.count))
      },
      length('Total', 'total_ns'),
      length('Self', 'self_ns'),
      length('Median', 'p50_ns'),
      length('p99', 'p99_ns'),
      length('Min', 'min_ns'),
      length('Max', 'max_ns'),
    ];
    const onRow = this.by === 'name' ? (row: SummaryRow) : void => this.host.find(nameTerm(row.name)): null;
    return new DataTable(columns, 'Events in the selection', 2, true, onRow);
  }
}

function ns(length: number): string {
  return String(Math.round(length));
}
