-- The demo's data: twelve tickets of Halden, a made-up shop for espresso machines, grinders and beans.
-- Runs once, inside one transaction, when the demo is first used (tickets.py).

CREATE TABLE customers (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    email   TEXT NOT NULL,
    country TEXT NOT NULL,
    since   TEXT NOT NULL
);

CREATE TABLE tickets (
    id          INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    subject     TEXT NOT NULL,
    body        TEXT NOT NULL,
    product     TEXT NOT NULL,
    priority    TEXT NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
    status      TEXT NOT NULL CHECK (status IN ('open', 'waiting', 'solved')),
    opened_at   TEXT NOT NULL,
    version     INTEGER NOT NULL  -- grows by one with every change, also when a note is taken back
);

CREATE TABLE notes (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: receipts name it
    ticket_id       INTEGER NOT NULL REFERENCES tickets (id),
    author          TEXT NOT NULL,
    body            TEXT NOT NULL,
    version         INTEGER NOT NULL,                   -- the ticket's, once the note was there
    created_at      TEXT NOT NULL,
    idempotency_key TEXT UNIQUE,                        -- stored with the effect, so that asking twice finds it
    removed_at      TEXT,
    removed_version INTEGER                             -- the ticket's, once the note was gone
);

CREATE INDEX notes_of_ticket ON notes (ticket_id);

-- What the agent says about a ticket when no model is set.
CREATE TABLE answers (
    ticket_id INTEGER PRIMARY KEY REFERENCES tickets (id),
    opening   TEXT NOT NULL,
    thinking  TEXT NOT NULL,
    note      TEXT NOT NULL,
    answer    TEXT NOT NULL
);

INSERT INTO customers (id, name, email, country, since) VALUES
    (301, 'Marta Lindqvist',  'marta.lindqvist@example.com',  'SE', '2021-03-14'),
    (302, 'Zoë Baptiste',     'zoe.baptiste@example.com',     'BE', '2023-11-02'),
    (303, 'Łukasz Wróbel',    'lukasz.wrobel@example.com',    'PL', '2022-06-27'),
    (304, 'Aoife Brennan',    'aoife.brennan@example.com',    'IE', '2019-09-08'),
    (305, '佐藤 陽菜',         'hina.sato@example.com',        'JP', '2024-01-19'),
    (306, 'Tomás Herrera',    'tomas.herrera@example.com',    'ES', '2020-12-05'),
    (307, 'Café Nordlicht',   'kontakt@nordlicht.example',    'DE', '2018-05-30'),
    (308, 'Priya Raman',      'priya.raman@example.com',      'GB', '2025-02-11'),
    (309, 'Jonas Feldmann',   'jonas.feldmann@example.com',   'DE', '2023-08-21');

INSERT INTO tickets (id, customer_id, subject, body, product, priority, status, opened_at, version) VALUES
    (970, 301, 'Grinder arrived without the hopper',
     'The G2 grinder came today, but the box has no hopper in it. The packing list says it should be there. Order H-20418.',
     'G2 grinder', 'normal', 'open', '2026-08-19T08:12:00Z', 3),
    (971, 303, 'Machine shows E07 after descaling',
     'Since I descaled the Duo yesterday it stops with E07 after half a minute. I rinsed it twice. The water tank is full.',
     'Duo espresso machine', 'high', 'open', '2026-08-19T17:40:00Z', 5),
    (972, 302, 'Change my subscription to every three weeks',
     'Two bags every two weeks is too much for us in summer. Can I get them every three weeks instead, until October?',
     'Bean subscription', 'low', 'open', '2026-08-20T06:55:00Z', 2),
    (973, 307, 'Invoice without our VAT number',
     'Invoice R-8841 lacks our VAT number DE298114207. Our accountant cannot book it like this. Please send a corrected one.',
     'Duo espresso machine', 'normal', 'open', '2026-08-20T09:31:00Z', 4),
    (974, 305, 'Parcel has not moved for nine days',
     'The tracking page says “handed to carrier” since 11 August and nothing after. Is the parcel lost? Order H-20377.',
     'Hand grinder Solo', 'high', 'waiting', '2026-08-20T23:03:00Z', 7),
    (975, 304, 'Portafilter handle is loose again',
     'You sent me a new handle in June and it wobbles again after two months. It is tightened as far as it goes.',
     'Duo espresso machine', 'normal', 'open', '2026-08-21T10:17:00Z', 6),
    (976, 306, 'Wrong beans in the August box',
     'I ordered the decaf (Noche) and got two bags of the dark roast. I cannot drink those in the evening!',
     'Bean subscription', 'normal', 'open', '2026-08-21T12:48:00Z', 2),
    (977, 308, 'Is the G2 safe for 110 V?',
     'I am moving to Toronto in October. Can my G2 run on 110 V with a plug adapter, or do I need another one?',
     'G2 grinder', 'low', 'open', '2026-08-22T15:20:00Z', 2),
    (978, 309, 'Return after 16 days',
     'I would like to send the milk frother back. I know that the two weeks are over, but I was in hospital until Monday.',
     'Milk frother', 'normal', 'open', '2026-08-23T07:05:00Z', 3),
    (979, 307, 'Second machine for the new shop, same price?',
     'We open a second café in November and want another Duo. Can we have it at the price of 2024, with the same service contract?',
     'Duo espresso machine', 'normal', 'waiting', '2026-08-23T11:44:00Z', 8),
    (980, 304, 'Please delete my old address',
     'I moved in July. Parcels still go to the old flat although I changed it in my account. Please delete the old one for good.',
     'Account', 'high', 'open', '2026-08-24T06:30:00Z', 4),
    (981, 306, 'Charged twice for one grinder',
     'My bank shows two charges of 249.00 EUR on 18 August for order H-20466, but I bought one G2. Please give one back. 😕',
     'G2 grinder', 'high', 'open', '2026-08-24T08:02:00Z', 18);

INSERT INTO notes (id, ticket_id, author, body, version, created_at) VALUES
    (531, 970, 'warehouse',  'Scale record of the parcel: 3.91 kg. Complete sets weigh 4.26 kg.', 3, '2026-08-19T09:40:00Z'),
    (533, 971, 'service',    'Serial DU-23-1187, under warranty until 27 June 2027.', 4, '2026-08-19T18:05:00Z'),
    (534, 971, 'service',    'E07 means: flow meter gives no pulses. After descaling usually loose scale in the inlet screen.', 5, '2026-08-19T18:06:00Z'),
    (536, 973, 'billing',    'VAT number is in the account since May; the invoice template did not read it before 14 August.', 4, '2026-08-20T10:02:00Z'),
    (538, 974, 'logistics',  'Search request sent to the carrier, reference S-77120. They answer within five working days.', 6, '2026-08-21T07:15:00Z'),
    (541, 974, 'logistics',  'Carrier: parcel was last scanned in Leipzig on 12 August and is missing since.', 7, '2026-08-24T06:58:00Z'),
    (542, 975, 'service',    'First replacement on 12 June, ticket 902. Same batch of handles as four other complaints.', 6, '2026-08-21T11:00:00Z'),
    (545, 978, 'returns',    'Bought on 7 August. Item unused according to the customer.', 3, '2026-08-23T07:30:00Z'),
    (547, 979, 'sales',      'Price of 2024 was 1,890 EUR net. List price today 2,040 EUR. Third machine of this customer.', 7, '2026-08-23T13:10:00Z'),
    (549, 979, 'sales',      'Discount of up to 8 % is within the team''s limit.', 8, '2026-08-23T13:12:00Z'),
    (551, 980, 'accounts',   'Old address is still the default of the bean subscription, which keeps its own copy.', 4, '2026-08-24T07:01:00Z'),
    (553, 981, 'payments',   'Two authorisations over 249.00 EUR: 18 August 09:14:02 and 09:14:07, same card.', 16, '2026-08-24T08:20:00Z'),
    (555, 981, 'payments',   'Only the second one was captured. The first was voided on 18 August at 09:20.', 17, '2026-08-24T08:31:00Z'),
    (557, 981, 'payments',   'The bank may show a voided authorisation for up to seven working days.', 18, '2026-08-24T08:32:00Z');

INSERT INTO answers (ticket_id, opening, thinking, note, answer) VALUES
    (970,
     'Looking at ticket 970: a grinder that came without its hopper. Let me see what the warehouse knows about the parcel.',
     'The customer says the hopper is missing. The parcel weighed 3.91 kg on the way out and a complete set weighs 4.26 kg, so 350 g are missing. That is what a hopper weighs. It was never packed. Nothing has to come back, and there is nothing to ask the customer.',
     'Hopper was not packed: the parcel was 350 g too light. Send one hopper for the G2 by express, free of charge. No return needed.',
     'You are right, and it is our mistake: your parcel left the warehouse 350 g lighter than a complete set, which is just what the hopper weighs.

We send you a hopper by express today, free of charge. It should be with you in Sweden within two working days, and you will get the tracking link by mail. Nothing needs to come back to us.

Until then the grinder works without it: put in a single dose of beans from above and cover the opening with the lid.

I left a note for the warehouse, so that the parcel scale stops a set that is too light.'),
    (971,
     'Looking at ticket 971: a Duo that stops with E07 since it was descaled. I will read what the service team wrote.',
     'E07 is the flow meter: it sees no pulses. Right after descaling, the likely cause is a crumb of scale in the inlet screen under the tank, not a broken sensor. The customer can clean it in five minutes without tools. The machine is under warranty, so if that does not help, a pickup costs nothing.',
     'Advised to clean the inlet screen under the tank (E07 after descaling). If E07 comes back: free pickup, warranty until 27 June 2027.',
     'E07 means that the machine sees no water flowing, although there is water. After descaling it is nearly always a crumb of scale in the small screen under the tank.

1. Switch the machine off and lift out the tank.
2. Pull the round screen straight up with two fingers and rinse it from below.
3. Put it back until it clicks, fill the tank and let half a litre run through without coffee.

If E07 returns after that, please answer this mail. Your machine is under warranty until 27 June 2027, so we would collect, repair and return it at no cost.'),
    (972,
     'Looking at ticket 972: a subscription that is a little too generous in summer. One moment.',
     'Two bags every two weeks until now; wanted are two bags every three weeks until October. The next box leaves on 27 August. The interval can be changed for a period. From 1 October it should go back to two weeks by itself, and the customer should hear of it before.',
     'Interval changed to three weeks until 30 September, then back to two weeks. Remind the customer on 24 September.',
     'Gladly. Your two bags now come every three weeks, starting with the next box: it leaves on 3 September instead of 27 August.

From 1 October you are back at every two weeks, as you asked. We write to you on 24 September, before that happens, so that you can keep the longer interval if you like it better.

The price for each bag stays the same, and nothing changes for the roast. Have a good summer!'),
    (973,
     'Looking at ticket 973: an invoice that lacks a VAT number. Let me check what billing found.',
     'The number DE298114207 has been in the account since May. Invoice R-8841 was made before 14 August, when the template did not read it. So the customer did nothing wrong. A correction has to refer to the old invoice. Other invoices of the same time may lack it too.',
     'Corrected invoice R-8841-K to be sent with VAT number DE298114207. Check the other invoices from May to 14 August.',
     'Thank you for telling us. Your VAT number was in your account all the time; our invoice template did not read it before 14 August.

You get invoice R-8841-K by mail within the hour. It refers to R-8841, replaces it and carries DE298114207. Amount and date of delivery are unchanged, so a payment you have already made stays booked as it is.

We also look through your other invoices since May and correct them unasked, should any of them lack the number.'),
    (974,
     'Looking at ticket 974: a parcel that has not moved since 11 August. I will see what the carrier said.',
     'The carrier saw the parcel in Leipzig on 12 August for the last time and calls it missing. The customer has waited for almost two weeks. Waiting for the end of the search helps nobody. The hand grinder is in stock, so a new one can leave today, and the search goes on between us and the carrier.',
     'Parcel of order H-20377 is missing since 12 August (carrier, S-77120). Send a replacement today; claim the loss from the carrier.',
     'I am sorry for the long silence. The carrier scanned your parcel in Leipzig on 12 August for the last time and has been searching for it since. You should not have to wait for the end of that search.

A new hand grinder leaves our warehouse today by air. It usually takes four to six days to Japan, and the new tracking number follows by mail this evening.

Should the first parcel turn up after all, simply refuse it, or tell us: we have it collected. You pay nothing in either case.'),
    (975,
     'Looking at ticket 975: a handle that is loose for the second time. Let me read the history.',
     'This is the second handle in two months, and four other complaints concern the same batch. So the batch is bad and a third handle of it would only wobble again. The newer handle with the steel thread fits the Duo. That should end it.',
     'Second loose handle from the bad batch of June. Send the handle with steel thread instead; report the batch to purchasing.',
     'That should not happen once, and certainly not twice. You did nothing wrong: the handles we got in June have a thread that is cut too shallow, and yours came from that batch.

I do not want to send you a third one of the same kind. You get our newer handle with a steel thread, which fits your Duo and is what we now build in. It leaves tomorrow; you need no tool to change it.

Please keep the old one or throw it away, as you like. If anything is loose after that, I would like to hear of it.'),
    (976,
     'Looking at ticket 976: the wrong beans in the August box. A moment, please.',
     'Ordered was the decaf Noche, sent were two bags of dark roast. The mistake is ours. Food cannot come back into stock, so there is no return. Send two bags of Noche at once and look whether the subscription itself is set wrongly, or September goes wrong too.',
     'Sent dark roast instead of decaf (Noche). Send two bags of Noche today. Subscription set right for September.',
     'That is our mistake, and a sleepless one. Two bags of Noche leave today and should be with you on Thursday.

Please keep the dark roast; perhaps you have guests who like it. We cannot take coffee back anyhow.

I also looked at why it happened: the roast of your subscription was changed by our import in July. It is set to Noche again, so the September box will be right.'),
    (977,
     'Looking at ticket 977: a grinder that moves to Toronto. Let me check the data of the motor.',
     'The G2 sold in Great Britain has a motor for 220 to 240 V. On 110 V it would turn far too slowly and overheat, and a plug adapter does not change the voltage. A transformer for 300 W would work, but it is heavy. There is a 110 V motor unit that service can change.',
     'Told customer: G2 (UK) must not run on 110 V. Offered the exchange of the motor unit before the move in October.',
     'Please do not run it on 110 V. Your G2 was built for 220 to 240 V; with a plug adapter alone it would start, turn too slowly and overheat.

You have two good ways. A transformer for at least 300 W works, but it weighs about four kilograms. Or we change the motor unit for the 110 V one: send the grinder in before the end of September and it is back within a week.

If you tell me which you prefer, I send you the price and a label. Everything else of the grinder is the same on both sides of the ocean.'),
    (978,
     'Looking at ticket 978: a return that comes two days late, for a good reason.',
     'Bought on 7 August, so the fourteen days ended on 21 August. The customer was in hospital. The frother is unused. The team may accept returns up to thirty days for a reason like this, and asking for a proof of a hospital stay would be wrong.',
     'Return accepted out of goodwill (hospital stay), no proof asked. Label sent; refund when the frother has arrived.',
     'I hope you are well again. Of course you can send the frother back; two days do not matter here, and you do not need to prove anything.

The label is attached to this mail. Put the frother into any box, hand it in at a parcel shop by 10 September, and you have the full price back within three working days after it has reached us.

If you lost the original packaging: that is fine too.'),
    (979,
     'Looking at ticket 979: a second machine for a good customer. I will see what sales wrote.',
     'They ask for the price of 2024, 1,890 EUR net. List price is 2,040 EUR. Up to 8 % discount is within the limit: 2,040 less 8 % is 1,876.80 EUR, even a little below the old price. So the answer can be yes without asking anyone. The service contract can be extended to a second machine.',
     'Offer: second Duo for 1,876.80 EUR net (8 % off list), service contract extended to both machines. Valid until 30 September.',
     'Congratulations on the second café! Yes, you can have the old price, and even a little better: we offer the Duo for 1,876.80 EUR net, 8 % below today’s list price.

The service contract covers the second machine under the same terms, with one visit a year for both shops together if you like.

The offer is valid until 30 September. A machine ordered by then is delivered and set up in the last week of October, in good time for your opening.'),
    (980,
     'Looking at ticket 980: an old address that will not go away. Let me see why.',
     'The customer changed the address in the account, but the bean subscription keeps a copy of its own, and that copy is the old one. So both have to be changed, and the old one deleted. A box is due on 27 August: it must not go to the old flat.',
     'Address of the bean subscription changed to the new one, old address deleted everywhere. Box of 27 August checked.',
     'You did change it, and we still sent parcels to the old flat: the bean subscription kept a copy of its own. I am sorry.

That copy is corrected now, and the old address is deleted for good; only the invoices we must keep by law still show it. The box of 27 August already goes to your new address.

If a parcel was lost at the old flat since July, please tell me which one, and we send it again at our cost.'),
    (981,
     'Looking at ticket 981: two charges for one grinder. I will read the ticket and what the payments team found.',
     'The bank shows 249.00 EUR twice on 18 August. Payments found two authorisations five seconds apart on the same card, which looks like a second press on the button. Only the second one was captured; the first was voided at 09:20. So there is no second payment that could be refunded: refunding now would give the money back for the grinder itself. The reserved amount disappears by 27 August at the latest, seven working days after the 18th.',
     'Checked: one capture of 249.00 EUR (09:14:07), the other authorisation was voided at 09:20. No refund due. Customer told to wait until 27 August; ask again if both still show then.',
     'Good news: you paid for one grinder only, although your bank shows two amounts at the moment.

On 18 August at 09:14 your card was asked twice within five seconds. We collected the second request, 249.00 EUR for your G2. The first one we released again six minutes later, at 09:20. A released amount can stay visible as “reserved” for up to seven working days, depending on the bank, so it should be gone by 27 August.

You do not need to do anything. If both charges are still there after 27 August, please answer this mail with a screenshot. I left a note on your ticket, so that whoever reads it can act at once.

Your grinder itself left our warehouse on 19 August. Enjoy the first cup!');
