// SPDX-License-Identifier: Apache-2.0
import {HeatGrid} from '../model/heat_grid';
import {HeatMark, heatMarks} from '../model/heat_marks';
import {Insight, PlacedVerdict, VerdictTone} from '../model/insight';

const kTagPx = 14;   // height of a tag
const kHatchPx = 6;  // distance of the hatching's lines

// Where a heat map lies on its canvas, in CSS px.
export interface HeatArea {
  left: number;
  width: number;
  height: number;
}

// Draws verdicts over a heat map: the lines of the ranks that they name are framed and named, and what was not judged
// is hatched.
export class HeatMarksPainter {
  private marks: HeatMark[] = [];
  private madeOf: [HeatGrid, Insight]|null = null;

  // Reads what to mark. Cheap if neither changed.
  update(grid: HeatGrid|null, insight: Insight|null): void {
    if (!grid || !insight) {
      this.marks = [];
      this.madeOf = null;
    } else if (this.madeOf?.[0] !== grid || this.madeOf[1] !== insight) {
      this.marks = heatMarks(grid, insight);
      this.madeOf = [grid, insight];
    }
  }

  // What the marks mean; '' without any.
  get legend(): string {
    const texts: string[] = [];
    if (this.marks.some(mark => mark.verdict)) texts.push('▸ framed: named by a verdict');
    if (this.marks.some(mark => mark.refusal)) texts.push('hatched: not judged');
    return texts.join('; ');
  }

  // What is known about a cell: the text of its verdicts, and what is missing.
  textsAt(line: number, column: number, columns: number): string[] {
    const left = column / columns, right = (column + 1) / columns;
    return this.marks.filter(mark => mark.line === line && mark.left < right && mark.right > left)
        .map(({verdict, refusal}) => {
          if (verdict) return `${verdict.kind}: ${verdict.message.text ?? ''}`;
          return `not judged, ${refusal!.message.reason ?? ''}: ${refusal!.message.missing ?? ''}`;
        });
  }

  paint(
      ctx: CanvasRenderingContext2D, lines: number, area: HeatArea, chosen: PlacedVerdict|null,
      labelOf: (stream: number) => string): void {
    if (!this.marks.length) return;
    const style = getComputedStyle(document.documentElement),
          colour = (name: string): string => style.getPropertyValue(name).trim();
    const hatch = hatching(ctx, colour('--text-dim')), each = area.height / lines;
    let tagEnd = -Infinity;
    for (const {line, stream, left, right, verdict, refusal} of this.marks) {
      const x = area.left + left * area.width, width = Math.max(3, (right - left) * area.width), y = line * each,
            height = Math.max(3, each);
      if (refusal && hatch) {
        ctx.fillStyle = hatch;
        ctx.fillRect(x, y, width, height);
      }
      if (!verdict) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(colourOf(verdict.tone));
      // Thin lines keep the cells of a low line in view.
      ctx.lineWidth = each < 2 * kTagPx ? 1 : verdict === chosen ? 3 : 1.5;
      ctx.strokeRect(x + 0.5, y, width - 1, height);
      if (verdict === chosen) ctx.fillRect(x - 4, y, 4, height);
      // Names that would lie over each other are left out: the frame and the panel Why have them too.
      const middle = Math.max(kTagPx / 2, Math.min(area.height - kTagPx / 2, y + height / 2));
      if (middle - kTagPx / 2 < tagEnd) continue;
      tagEnd = middle + kTagPx / 2;
      this.paintTag(ctx, `▸ ${labelOf(stream)} ${verdict.kind}`, x + 3, middle, colour('--lane'));
    }
  }

  // In the colour that is set, at the left end of the frame.
  private paintTag(ctx: CanvasRenderingContext2D, text: string, x: number, middle: number, textColour: string): void {
    ctx.font = '11px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    ctx.fillRect(x, middle - kTagPx / 2, ctx.measureText(text).width + 8, kTagPx);
    ctx.fillStyle = textColour;
    ctx.fillText(text, x + 4, middle + 0.5);
  }
}

function colourOf(tone: VerdictTone): string {
  return tone === 'hang' ? '--loss' : tone === 'slow' ? '--verdict' : '--text-dim';
}

function hatching(ctx: CanvasRenderingContext2D, colour: string): CanvasPattern|null {
  const tile = document.createElement('canvas'), lines = tile.getContext('2d')!;
  tile.width = tile.height = kHatchPx;
  lines.strokeStyle = colour;
  lines.lineWidth = 1;
  lines.beginPath();
  // Three strokes, so that the corners of neighbouring tiles join.
  for (const shift of [-kHatchPx, 0, kHatchPx]) {
    lines.moveTo(shift - 1, kHatchPx + 1);
    lines.lineTo(shift + kHatchPx + 1, -1);
  }
  lines.stroke();
  return ctx.createPattern(tile, 'repeat');
}
