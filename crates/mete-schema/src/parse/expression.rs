//! Expressions, with the precedence of operators in C.

use super::token::Token;
use super::{Parsed, Parser};
use crate::ast::{Binary, Expr, ExprKind, Name, Unary};
use crate::limits::MAX_EXPRESSION_PARTS;
use crate::problem::Problem;
use crate::source::Span;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.parts_left = MAX_EXPRESSION_PARTS;
        self.choice()
    }

    fn choice(&mut self) -> Parsed<Expr> {
        let condition = self.binary(1)?;
        if !self.is("?") {
            return Ok(condition);
        }
        self.count()?;
        self.advance();
        // Both values may be choices: `?` binds to the right.
        let yes = self.choice()?;
        self.expect(":", "between the two values of `?`")?;
        let no = self.choice()?;
        let span = condition.span.to(no.span);
        Ok(Expr { kind: ExprKind::Choice(condition.into(), yes.into(), no.into()), span })
    }

    /// An expression whose operators bind at least as strongly as `strength`.
    fn binary(&mut self, strength: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some(operator) = self.binary_sign().filter(|operator| operator.strength() >= strength) {
            self.count()?;
            self.advance();
            // One more, so that the next operator of the same strength takes all of this as its left side.
            let right = self.binary(operator.strength() + 1)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, left.into(), right.into()), span };
        }
        Ok(left)
    }

    fn binary_sign(&self) -> Option<Binary> {
        let sign = Some(self.text()).filter(|_| self.word().token == Token::Sign)?;
        Binary::ALL.into_iter().find(|operator| operator.sign() == sign)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        // Each recursion passes here, so that counting here bounds the depth.
        self.count()?;
        let begin = self.span();
        if let Some(operator) = Unary::ALL.into_iter().find(|operator| self.is(operator.sign())) {
            self.advance();
            let operand = self.unary()?;
            let span = begin.to(operand.span);
            return Ok(Expr { kind: ExprKind::Unary(operator, operand.into()), span });
        }
        let mut expr = self.primary()?;
        loop {
            let kind = if self.take(".") || self.take("->") {
                ExprKind::Member(expr.into(), self.name("the name of a member")?)
            } else if self.take("[") {
                let at = self.number("which element, as a number")?;
                self.expect("]", "behind the number of the element")?;
                ExprKind::Index(expr.into(), at)
            } else {
                return Ok(expr);
            };
            // No recursion here, but a chain of members is a deep tree.
            self.count()?;
            expr = Expr { kind, span: begin.to(self.last()) };
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        if self.take("(") {
            let inner = self.choice()?;
            // The tree has no parentheses: formatting adds those that are needed.
            let end = self.expect(")", "behind the expression")?;
            return Ok(Expr { kind: inner.kind, span: span.to(end) });
        }
        match self.word().token {
            Token::Number => {
                let number = self.number("a number")?;
                Ok(Expr { kind: ExprKind::Number(number), span })
            }
            Token::Name => self.name_or_cast(span),
            _ => self.refuse("a value: a name, a number or an expression in parentheses"),
        }
    }

    fn name_or_cast(&mut self, span: Span) -> Parsed<Expr> {
        let Name { text, span: place } = self.name("a name")?;
        if !self.take("(") {
            return Ok(Expr { kind: ExprKind::Name(text), span });
        }
        let inner = self.choice()?;
        let end = self.expect(")", "behind the value")?;
        let kind = ExprKind::Cast(Name { text, span: place }, inner.into());
        Ok(Expr { kind, span: span.to(end) })
    }

    /// Counts one more part. Without a limit, an expression could be nested more deeply than the stack
    /// allows.
    fn count(&mut self) -> Parsed<()> {
        match self.parts_left.checked_sub(1) {
            Some(left) => {
                self.parts_left = left;
                Ok(())
            }
            None => {
                let title = format!("an expression has more than {MAX_EXPRESSION_PARTS} parts");
                let help = "log its parts, and compute the rest afterwards";
                self.report(Problem::new(self.span(), title, "too much from here on").help(help.to_owned()))
            }
        }
    }
}
