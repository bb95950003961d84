// SPDX-License-Identifier: Apache-2.0
import {formatDuration, formatMoment} from '../model/text_format';
import {button, element, iconButton, notice, replaceChildren} from '../widgets/dom';

import {Panel} from './dock';
import {TimelineHost} from './timeline_host';

// Named moments, and how far they are apart.
export class MarkersPanel implements Panel {
  readonly name = 'markers';
  readonly title = 'Markers';
  readonly element = element('div', {class: 'panel'});
  private shown = '';

  constructor(private readonly host: TimelineHost) {}

  add(time: number, name = ''): void {
    const {markers} = this.host.state;
    markers.push({name: name || nextName(markers.map(marker => marker.name)), time});
    markers.sort((a, b) => a.time - b.time);
    this.changed();
  }

  update(): void {
    const {markers} = this.host.state, key = markers.map(marker => `${marker.time}:${marker.name}`).join('\n');
    if (key === this.shown && this.element.firstChild) return;
    this.shown = key;
    if (!markers.length) {
      replaceChildren(
          this.element,
          notice(
              'empty', 'There are no markers',
              'Press m to mark the pointer’s time, or both ends of the selection. ' +
                  'Markers are in the link to this view.'));
      return;
    }
    const body = element('tbody');
    markers.forEach(
        (marker, i) => body.appendChild(this.line(
            i, marker.time, i > 0 ? marker.time - markers[i - 1].time : null, marker.time - markers[0].time)));
    replaceChildren(
        this.element,
        element(
            'div', {class: 'table-box'},
            element(
                'table', {'aria-label': 'Markers'},
                element(
                    'thead', {},
                    element(
                        'tr', {}, element('th', {scope: 'col'}, 'Name'),
                        element('th', {scope: 'col', class: 'number'}, 'Time'),
                        element('th', {scope: 'col', class: 'number'}, 'After the one before'),
                        element('th', {scope: 'col', class: 'number'}, 'After the first'),
                        element('th', {scope: 'col'}, ''))),
                body)));
  }

  private line(index: number, time: number, before: number|null, first: number): HTMLElement {
    const {state} = this.host, marker = state.markers[index];
    const name = element('input', {type: 'text', 'aria-label': `Name of marker ${index + 1}`, maxlength: 100});
    name.value = marker.name;
    name.addEventListener('change', () => {
      marker.name = name.value;
      this.changed();
    });
    const go = button('Go there', () => {
      state.viewport.show(time - state.viewport.span / 2, time + state.viewport.span / 2);
      this.host.viewChanged();
    });
    return element(
        'tr', {}, element('td', {}, name), element('td', {class: 'number'}, formatMoment(time)),
        element('td', {class: 'number'}, before === null ? '' : formatDuration(before)),
        element('td', {class: 'number'}, index > 0 ? formatDuration(first) : ''),
        element('td', {class: 'row-tools'}, go, iconButton('close', `Remove marker ${marker.name}`, () => {
                  state.markers.splice(index, 1);
                  this.changed();
                })));
  }

  private changed(): void {
    this.host.viewChanged();
    this.update();
  }
}

// A, B, … Z, 27, 28, …
function nextName(taken: string[]): string {
  for (let i = 0;; ++i) {
    const name = i < 26 ? String.fromCharCode(65 + i) : String(i + 1);
    if (!taken.includes(name)) return name;
  }
}
