alter table agentmesh.agents
  add column may_halt boolean not null default false,       -- its type lets its report end the work of those above it
  add column halted text,                                   -- why an agent below has ended the turn interrupt_turn; null: an ordinary interrupt
  add column silent boolean not null default false;         -- screens fold it away, with all below it

alter domain agentmesh.mail_about drop constraint mail_about_check;
alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report', 'process', 'alarm', 'halt'));
