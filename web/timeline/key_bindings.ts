// SPDX-License-Identifier: Apache-2.0
import {PointerTools} from './pointer_tools';
import {Stage} from './stage';
import {TimelineHost} from './timeline_host';

const kPanStep = 0.15, kZoomStep = 1.35;

// What the page does beside moving the view when a key is pressed.
export interface KeyActions {
  showHelp(): void;
  fitSelection(): void;
  markSelection(): void;
  focusSearch(): void;
  nextHit(step: number): void;
  moveChosen(step: number): void;
  followChain(upstream: boolean): void;
  showWhy(): void;
  toggleBands(): void;
  nextGrouping(): void;
  escape(): void;
}

export const kKeyHelp: [string, string][] = [
  ['W, S', 'zoom in and out at the pointer'],
  ['A, D or ←, →', 'pan'],
  ['↑, ↓, PageUp, PageDown', 'scroll the ranks'],
  ['wheel', 'zoom at the pointer; with Ctrl or Shift pan, with Alt scroll'],
  ['0', 'show the whole capture'],
  ['1 … 4', 'tools: select, pan, zoom, measure time'],
  ['f', 'zoom to the selection'],
  ['m', 'mark the selection, or the pointer’s time'],
  ['click, drag', 'select a span; select a box (tool 1)'],
  ['Ctrl+click', 'add a span to the selection, or remove it'],
  ['Shift+click', 'select the time from the chosen span to this one'],
  ['double click', 'zoom to a span'],
  [', and .', 'previous and next span in the row of the chosen one'],
  ['u, j', 'what the chosen span waited for, and what waited for it; again: no longer'],
  ['y', 'why: which rank is slow or hung'],
  ['v', 'mark verdicts on the timeline, or no longer'],
  ['/', 'search'],
  ['n, N', 'next and previous hit'],
  ['Esc', 'close the panel, then clear the selection'],
  ['p, h', 'in the tree: pin, hide a rank or a row'],
  ['c, C', 'in the tree: collapse or expand this kind of rows on all ranks; all kinds'],
  ['Enter, Space', 'in the tree: expand, collapse'],
  ['g', 'group by the next of: instance, rank, process, job, core, kind, row name'],
  ['arrows, Enter, W', 'in the heat map: choose a cell, go there; find the worst cell'],
  ['?', 'this list'],
];

// The keys of the timeline, as in XProf's viewer where it has the same function.
export class KeyBindings {
  constructor(
      private readonly host: TimelineHost, private readonly stage: Stage, private readonly pointer: PointerTools,
      private readonly actions: KeyActions) {
    document.addEventListener('keydown', this.onKey);
  }

  close(): void {
    document.removeEventListener('keydown', this.onKey);
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.altKey || event.metaKey ||
        target.closest('input, textarea, select, dialog, [role=menu]'))
      return;
    if (target.closest('button, a, [role=separator], [role=tab]') && /^(Enter| |Arrow)/.test(event.key)) return;
    if (target.closest('.dock') && /^(Arrow|Page)/.test(event.key)) return;
    if (this.move(event.key) || this.act(event.key)) event.preventDefault();
  };

  private move(key: string): boolean {
    const {viewport} = this.host.state, page = Math.max(1, Math.floor(this.stage.height / 17) - 2);
    switch (key.length === 1 ? key.toLowerCase() : key) {
      case 'w':
        viewport.zoom(1 / kZoomStep, this.pointer.fraction);
        break;
      case 's':
        viewport.zoom(kZoomStep, this.pointer.fraction);
        break;
      case 'a':
      case 'ArrowLeft':
        viewport.pan(-kPanStep);
        break;
      case 'd':
      case 'ArrowRight':
        viewport.pan(kPanStep);
        break;
      case '0':
        viewport.showAll();
        break;
      case 'ArrowUp':
        this.stage.scrollByUnits(-3);
        return true;
      case 'ArrowDown':
        this.stage.scrollByUnits(3);
        return true;
      case 'PageUp':
        this.stage.scrollByUnits(-page);
        return true;
      case 'PageDown':
        this.stage.scrollByUnits(page);
        return true;
      default:
        return false;
    }
    this.host.viewChanged();
    return true;
  }

  private act(key: string): boolean {
    const {actions} = this;
    switch (key) {
      case '1':
      case '2':
      case '3':
      case '4':
        this.host.setTool(Number(key));
        return true;
      case 'f':
        actions.fitSelection();
        return true;
      case 'm':
        actions.markSelection();
        return true;
      case '/':
        actions.focusSearch();
        return true;
      case 'n':
        actions.nextHit(1);
        return true;
      case 'N':
        actions.nextHit(-1);
        return true;
      case ',':
        actions.moveChosen(-1);
        return true;
      case '.':
        actions.moveChosen(1);
        return true;
      case 'u':
        actions.followChain(true);
        return true;
      case 'j':
        actions.followChain(false);
        return true;
      case 'y':
        actions.showWhy();
        return true;
      case 'v':
        actions.toggleBands();
        return true;
      case 'g':
        actions.nextGrouping();
        return true;
      case '?':
        actions.showHelp();
        return true;
      case 'Escape':
        actions.escape();
        return true;
      default:
        return false;
    }
  }
}
