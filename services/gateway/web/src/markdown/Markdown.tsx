/**
 * Markdown as elements. Safe by construction: the text is taken apart into tokens and each token
 * becomes an element of ours; raw HTML stays the text it was written as (GTW-234).
 */

import { Lexer, type Token, type Tokens } from "marked";
import { memo, useMemo } from "react";
import { CodeBlock } from "./CodeBlock";
import { decodeEntities } from "./entities";
import { safeLink } from "./links";
import { RemoteImage } from "./RemoteImage";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => new Lexer({ gfm: true, breaks: true }).lex(text), [text]);
  return (
    <div className="prose">
      {blocks.map((token, index) => (
        <Block key={index} raw={token.raw} token={token} />
      ))}
    </div>
  );
});

/** While text streams only its last block changes: the others are not drawn again. */
const Block = memo(
  function Block({ token }: { raw: string; token: Token }) {
    return <Element token={token} />;
  },
  (before, after) => before.raw === after.raw && before.token.type === after.token.type,
);

function Children({ tokens }: { tokens: Token[] | undefined }) {
  return tokens?.map((token, index) => <Element key={index} token={token} />);
}

function Element({ token }: { token: Token }) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return (
        <p>
          <Children tokens={token.tokens} />
        </p>
      );
    case "heading": {
      // The page has the first two levels: a reply's own begin under them.
      const Level = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as "h3";
      return (
        <Level>
          <Children tokens={token.tokens} />
        </Level>
      );
    }
    case "text":
      return token.tokens ? <Children tokens={token.tokens} /> : decodeEntities(token.text as string);
    case "escape":
      return token.text as string;
    case "html":
      return token.text as string;
    case "strong":
      return (
        <strong>
          <Children tokens={token.tokens} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Children tokens={token.tokens} />
        </em>
      );
    case "del":
      return (
        <del>
          <Children tokens={token.tokens} />
        </del>
      );
    case "codespan":
      return <code>{token.text as string}</code>;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "code":
      return (
        <CodeBlock
          text={token.text as string}
          language={((token as Tokens.Code).lang ?? "").split(/\s/)[0] ?? ""}
        />
      );
    case "blockquote":
      return (
        <blockquote>
          <Children tokens={token.tokens} />
        </blockquote>
      );
    case "list":
      return <List list={token as Tokens.List} />;
    case "checkbox":
      return <span className="task-box">{(token as Tokens.Checkbox).checked ? "☑ " : "☐ "}</span>;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "link":
      return <Link link={token as Tokens.Link} />;
    case "image": {
      const image = token as Tokens.Image;
      return <RemoteImage href={image.href} alt={image.text} />;
    }
    default:
      return token.raw;
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <li key={index}>
      <Children tokens={item.tokens} />
    </li>
  ));
  if (!list.ordered) return <ul>{items}</ul>;
  return <ol start={typeof list.start === "number" ? list.start : 1}>{items}</ol>;
}

function Table({ table }: { table: Tokens.Table }) {
  const side = (align: string | null) => (align ? `cell-${align}` : undefined);
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index} className={side(cell.align)} scope="col">
                <Children tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index} className={side(cell.align)}>
                  <Children tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Link({ link }: { link: Tokens.Link }) {
  const url = safeLink(decodeEntities(link.href));
  if (!url) return link.raw;
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer" title={url.host || url.href}>
      <Children tokens={link.tokens} />
    </a>
  );
}
