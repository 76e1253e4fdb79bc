// Streamed Markdown as nodes: every word becomes a text node once, in the place where the parser is, and is not touched again.
//
// No string is ever read as HTML: raw HTML stays text, a picture becomes a link to it, and only addresses that
// `safeAddress` knows become links. The parser has inputs on which it takes quadratic time (a line of 100,000 backticks) or
// nests without bound; long pending text and long pieces go on as plain text, deep ones as siblings.

import { NeutralPieces, safeAddress } from "./shown_text.js";
import { MarkdownAttr, MarkdownToken, markdownEnd, markdownParser, markdownWrite } from "./vendor.js";

// Characters that the parser may hold back before it knows what they are.
const PENDING_MAX = 500;
// Characters of one piece that are parsed; beyond them text is plain.
const PARSED_MAX = 300_000;
// Characters given to the parser at once; between two of them the limits are checked.
const STEP = 512;
const DEPTH_MAX = 16;

const TAGS = {
    [MarkdownToken.Blockquote]: "blockquote",
    [MarkdownToken.Paragraph]: "p",
    [MarkdownToken.Line_Break]: "br",
    [MarkdownToken.Rule]: "hr",
    // The page's own headings are above those of an answer.
    [MarkdownToken.Heading_1]: "h3",
    [MarkdownToken.Heading_2]: "h4",
    [MarkdownToken.Heading_3]: "h5",
    [MarkdownToken.Heading_4]: "h6",
    [MarkdownToken.Heading_5]: "h6",
    [MarkdownToken.Heading_6]: "h6",
    [MarkdownToken.Italic_Ast]: "em",
    [MarkdownToken.Italic_Und]: "em",
    [MarkdownToken.Strong_Ast]: "strong",
    [MarkdownToken.Strong_Und]: "strong",
    [MarkdownToken.Strike]: "s",
    [MarkdownToken.Code_Inline]: "code",
    [MarkdownToken.Raw_URL]: "a",
    [MarkdownToken.Link]: "a",
    [MarkdownToken.Image]: "a",
    [MarkdownToken.List_Unordered]: "ul",
    [MarkdownToken.List_Ordered]: "ol",
    [MarkdownToken.List_Item]: "li",
    [MarkdownToken.Table_Row]: "tr",
    [MarkdownToken.Equation_Block]: "code",
    [MarkdownToken.Equation_Inline]: "code",
};
const BLOCKS = new Set(["p", "h3", "h4", "h5", "h6", "li", "blockquote"]);

/** Writes one text into `root` as it grows. `end` closes it; a text that changes needs a new writer. */
export class MarkdownWriter {
    constructor(root) {
        this._root = root;
        this._pieces = new NeutralPieces();
        this._parsed = 0;
        this._plain = null;
        this._parser = markdownParser(renderer(root));
    }

    write(text) {
        this._write(this._pieces.take(text));
    }

    end() {
        this._write(this._pieces.end());
        if (!this._plain) markdownEnd(this._parser);
    }

    _write(text) {
        for (let at = 0; at < text.length; at += STEP) {
            if (this._plain) {
                this._plain.append(text.slice(at));
                return;
            }
            markdownWrite(this._parser, text.slice(at, at + STEP));
            this._parsed += STEP;
            if (this._parser.pending.length > PENDING_MAX || this._parsed > PARSED_MAX) this._giveUp();
        }
    }

    /** What the parser holds back, and all that follows, is shown as it is. */
    _giveUp() {
        this._plain = element("p", "plain");
        this._plain.append(this._parser.pending);
        this._root.append(this._plain);
    }
}

/** The whole text at once. */
export function writeMarkdown(root, text) {
    const writer = new MarkdownWriter(root);
    writer.write(text);
    writer.end();
}

function renderer(root) {
    return { data: { nodes: [root] }, add_token: addToken, end_token: endToken, add_text: addText, set_attr: setAttr };
}

function addToken(data, type) {
    const parent = data.nodes.at(-1);
    if (data.nodes.length > DEPTH_MAX) {
        data.nodes.push(parent);
        return;
    }
    const node = nodeOf(type, parent);
    parent.append(node);
    data.nodes.push(node.querySelector(":scope > pre > code, :scope > table") ?? node);
}

function nodeOf(type, parent) {
    switch (type) {
        case MarkdownToken.Code_Block:
        case MarkdownToken.Code_Fence:
            return codeBlock();
        case MarkdownToken.Table:
            return tableFrame();
        case MarkdownToken.Table_Cell:
            return element(parent.previousSibling ? "td" : "th");
        case MarkdownToken.Checkbox:
            return element("span", "checkbox");
        case MarkdownToken.Image:
            return element("a", "image");
    }
    const tag = TAGS[type] ?? "span";
    const made = element(tag);
    if (BLOCKS.has(tag)) made.dir = "auto";
    return made;
}

function endToken(data) {
    data.nodes.pop();
}

function addText(data, text) {
    data.nodes.at(-1).append(text);
}

function setAttr(data, type, value) {
    const node = data.nodes.at(-1);
    if (type === MarkdownAttr.Href || type === MarkdownAttr.Src) {
        setAddress(node, value);
    } else if (type === MarkdownAttr.Lang) {
        const label = node.closest?.(".code")?.querySelector(".code-language");
        if (label) label.textContent = value.slice(0, 40);
    } else if (type === MarkdownAttr.Checked) {
        node.classList.add("checked");
    } else if (type === MarkdownAttr.Start) {
        node.start = Number.parseInt(value, 10) || 1;
    }
}

function setAddress(node, value) {
    const address = safeAddress(value);
    if (!address) {
        // No link: its address is shown, so that nothing is hidden.
        if (node.textContent !== value) node.append(` (${value})`);
        return;
    }
    Object.assign(node, { href: address, target: "_blank", rel: "noopener noreferrer nofollow", title: address });
}

function codeBlock() {
    const frame = element("div", "code");
    const bar = frame.appendChild(element("div", "code-bar"));
    bar.appendChild(element("span", "code-language"));
    const copy = bar.appendChild(element("button", "code-copy"));
    copy.type = "button";
    copy.textContent = "Copy";
    const pre = frame.appendChild(element("pre"));
    pre.tabIndex = 0;
    pre.dir = "ltr";
    pre.appendChild(element("code"));
    return frame;
}

function tableFrame() {
    const frame = element("div", "table");
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "table");
    frame.appendChild(element("table"));
    return frame;
}

function element(tag, name = "") {
    const made = document.createElement(tag);
    if (name) made.className = name;
    return made;
}
