// SPDX-License-Identifier: Apache-2.0
import {csvText, fileName} from '../model/safe_text';
import {kMerged} from '../model/span_tile';
import {formatCount, formatDuration, formatMoment} from '../model/text_format';
import {DataTable} from '../widgets/data_table';
import {button, download, element, replaceChildren} from '../widgets/dom';

import {Panel} from './dock';
import {PointerTools} from './pointer_tools';
import {Stage} from './stage';
import {ChosenSpan, TimelineHost} from './timeline_host';

const kRowsMax = 300;
const kPauseMs = 300;

// The spans on the screen as a table, for screen readers and for those who prefer one. Filled from what was drawn.
export class TablePanel implements Panel {
  readonly name = 'table';
  readonly title = 'Table';
  readonly element = element('div', {class: 'panel'});
  private readonly table: DataTable<ChosenSpan>;
  private readonly head = element('div', {class: 'panel-head', role: 'status'});
  private timer = 0;

  constructor(
      private readonly host: TimelineHost, private readonly stage: Stage, private readonly pointer: PointerTools) {
    const {state} = host;
    this.table = new DataTable<ChosenSpan>(
        [
          {title: 'Begin', numeric: true, value: span => span.from, show: span => formatMoment(span.from)},
          {
            title: 'Duration',
            numeric: true,
            value: span => span.to - span.from,
            show: span => formatDuration(span.to - span.from)
          },
          {title: 'Name', value: span => span.name, style: 'wide'},
          {title: 'Events', numeric: true, value: span => span.count, show: span => formatCount(span.count)},
          {title: 'Rank', value: span => state.streamLabel(span.stream)},
          {title: 'Row', value: span => state.rowLabel(span.stream, span.row)},
        ],
        'Events in view', 0, false, span => host.chooseSpan(span), kRowsMax);
    replaceChildren(this.element, this.head, this.table.element);
  }

  // Waits until the view rests, because a table of hundreds of rows takes longer than a frame.
  update(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.build(), kPauseMs);
  }

  // What is on the screen, as CSV.
  csv(): string {
    const {state} = this.host, rows = this.spans(Infinity);
    return csvText([
      ['begin_ns', 'duration_ns', 'name', 'category', 'events', 'rank', 'row'],
      ...rows.map(
          span =>
              [state.base.absolute(span.from), span.to - span.from, span.name, span.category, span.count,
               state.streamLabel(span.stream), state.rowLabel(span.stream, span.row)])
    ]);
  }

  private spans(limit: number): ChosenSpan[] {
    const {list} = this.stage.painter, spans: ChosenSpan[] = [];
    for (let i = 0; i < list.count && spans.length < limit; ++i) spans.push(this.pointer.spanOf(i));
    return spans;
  }

  private build(): void {
    const {list} = this.stage.painter, spans = this.spans(kRowsMax),
          merged = spans.filter(span => span.flags & kMerged).length;
    replaceChildren(
        this.head, element('strong', {}, `${formatCount(list.count)} items on the screen`),
        element(
            'span', {class: 'faint'},
            (list.count > kRowsMax ? `the first ${kRowsMax} are listed. ` : '') +
                (merged > 0 ? `${merged} of them stand for several events; zoom in to see each.` : '')),
        button(
            'CSV of all',
            () => download(
                fileName(`${this.host.state.layout.name}_view`, '.csv'), new Blob([this.csv()], {type: 'text/csv'}))));
    this.table.show(spans);
  }
}
